"""The entry point of `pulsar-advisor` and of `python -m pulsar_advisor`."""

from __future__ import annotations

import signal


def main() -> None:
    """Run the command line. Ctrl-C ends the process without a stack trace while its code is being loaded."""
    interrupt = signal.getsignal(signal.SIGINT)
    if interrupt is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from pulsar_advisor import cli

    signal.signal(signal.SIGINT, interrupt)
    cli.main()


if __name__ == "__main__":
    main()
