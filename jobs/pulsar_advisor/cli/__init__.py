"""`pulsar-advisor`: one verb per stage; results on stdout, progress and logs on stderr, exit codes by outcome.

0 done · 1 unexpected failure · 2 usage · 3 data not fit for use · 4 refused · 5 applied in part, or deviates ·
6 a goal not reached, or only in part · 7 changes proposed, with `--detailed-exitcode` · 8 the cluster's own balancer
is still off.
"""

from __future__ import annotations

import gc
import os
import re
import signal
import sys
import traceback
from collections.abc import Sequence
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Final, Literal

from cyclopts import App, CycloptsError, Parameter

from pulsar_advisor.cli import (
    applying,
    clusters,
    consent,
    explanations,
    exports,
    goals,
    guard,
    histories,
    history_import,
    ledger,
    outcomes,
    records,
    rolls,
    simulations,
    snapshots,
    stages,
)
from pulsar_advisor.cli.output import IN_ANY_ENCODING, Ended, listen, log
from pulsar_advisor.cli.signals import Terminated, terminate
from pulsar_advisor.cli.usage import PlainHelp, explained, shown_default
from pulsar_advisor.model.errors import AdvisorError, UsageError

# Stages import Spark, Great Expectations, kazoo, SQLAlchemy: each verb imports only what it needs, when it runs.

INTERRUPTED: Final = 130
UNREAD: Final = 141
"""As a shell reports a process that SIGPIPE ended."""
TERMINATED: Final = 143
"""As a shell reports a process that SIGTERM ended."""
_WIDTH: Final = re.compile("[1-9][0-9]{1,3}")
_RARE_COLLECTIONS: Final = (50_000, 20, 100)
"""Python's own thresholds have it walk again and again over what libraries make once, when they are imported: a quarter
of the import of Great Expectations."""


_ANYWHERE: Final = (
    "Anywhere: -q no progress; -v what each stage is doing; --debug the stack trace of a failure.\n\n"
    "Exit codes: 0 done; 1 unexpected failure; 2 usage; 3 data not fit for use; 4 refused; 5 applied in part, or "
    "deviates; 6 a goal not reached, or only in part; 7 changes proposed (with --detailed-exitcode); 8 the cluster's "
    "own balancer is still off."
)


def _version() -> str:
    from pulsar_advisor.model.release import running_release

    return running_release() or "unknown: not installed as a package"


app = App(
    name="pulsar-advisor",
    help="Previews, explains and carries out load balancing of Apache Pulsar clusters.",
    version=_version,
    help_epilogue=_ANYWHERE,
    help_format="plaintext",
    help_formatter=PlainHelp(),
    default_parameter=Parameter(negative_iterable=(), show_default=shown_default),
    result_action="return_value",
    suppress_keyboard_interrupt=False,
)
for verb in (
    stages.capture,
    stages.normalize,
    stages.validate,
    stages.lint,
    stages.recommend,
    goals.drain,
    goals.relieve,
    goals.fill,
    goals.balance,
    goals.split,
    goals.conform,
    goals.move,
    goals.restart_order,
    goals.scale,
    stages.report,
    stages.run,
    simulations.simulate,
    simulations.upgrade,
    explanations.explain,
    consent.approve,
    consent.withdraw,
    applying.apply,
    outcomes.undo,
    outcomes.verify,
    records.runs,
    histories.trend,
    histories.diff,
    histories.index,
    clusters.doctor,
    clusters.brokers,
):
    app.command(verb)

of_snapshots = App(name="snapshots", help="List, show, export, import and prune snapshots.")
of_snapshots.command(snapshots.list_snapshots, name="list")
of_snapshots.command(snapshots.show_snapshot, name="show")
of_snapshots.command(snapshots.prune_snapshots, name="prune")
of_snapshots.command(snapshots.export, name="export")
of_snapshots.command(snapshots.import_, name="import")
app.command(of_snapshots)


of_history = App(name="history", help="Fold snapshots into a history that lasts; show, verify and export it.")
of_history.command(histories.fold)
of_history.command(history_import.import_days, name="import")
of_history.command(histories.show_days, name="show")
of_history.command(histories.verify_days, name="verify")
of_history.command(histories.export_days, name="export")
app.command(of_history)


def install_completion(
    *,
    shell: Literal["bash", "zsh", "fish"] | None = None,
    output: Annotated[Path | None, Parameter(name=("-o", "--output"))] = None,
) -> None:
    """Install completion for the shell in use: bash, zsh or fish.

    Parameters
    ----------
    shell
        Another shell than the one in use.
    output
        File to write, and nothing else; by default where the shell looks for it, with a line in ~/.bashrc or ~/.zshrc.
    """
    # Loads what generates completions, a twentieth of the time of a help text.
    from cyclopts.completion.install import create_install_completion_command

    create_install_completion_command(app.install_completion, add_to_startup=output is None)(shell=shell, output=output)


app.command(install_completion, name="--install-completion")

of_plans = App(name="plans")
of_plans.default(records.plans)
of_plans.command(exports.export)
app.command(of_plans)

of_roll = App(name="roll")
of_roll.default(rolls.plan)
of_roll.command(rolls.continue_, name="continue")
of_roll.command(rolls.status)
of_roll.command(rolls.pause)
of_roll.command(rolls.end)
app.command(of_roll)

of_guard = App(name="guard")
of_guard.default(guard.show)
of_guard.command(guard.restore)
of_guard.command(guard.leave)
app.command(of_guard)

of_audit = App(name="audit")
of_audit.default(ledger.verify_ledger)
of_audit.command(ledger.verify_ledger, name="verify")
app.command(of_audit)


def exit_code(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code. With `--debug` anywhere, a failure shows its stack trace."""
    try:
        code = _exit_code(arguments)
    except BrokenPipeError:
        code = UNREAD
    except SystemExit as ended:
        if not isinstance(ended.__context__, BrokenPipeError):
            raise
        code = UNREAD  # rich, which draws tables and help, has noticed it
    try:
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the interpreter flushes once more
        if isinstance(error, BrokenPipeError):  # the reader, such as `head`, has seen enough
            return code or UNREAD
        log(f"error: can't write the result: {error.strerror or error}")
        return code or AdvisorError.exit_code  # that the balancer is off, or that a run is incomplete, matters more
    return code


def _exit_code(arguments: Sequence[str]) -> int:
    debug = "--debug" in arguments
    try:
        words = listen([argument for argument in arguments if argument != "--debug"])
        app(words, exit_on_error=False, print_error=False)
    except CycloptsError as error:
        log(f"error: {explained(error)}\nSee `{' '.join(('pulsar-advisor', *(error.command_chain or ()), '--help'))}`.")
        return UsageError.exit_code
    except AdvisorError as error:
        if debug:
            log(traceback.format_exc())
        log(f"error: {error}")
        return error.exit_code
    except Ended as ended:
        return ended.exit_code
    except Terminated:
        log("terminated")
        return TERMINATED
    except KeyboardInterrupt:
        log("interrupted")
        return INTERRUPTED
    except BrokenPipeError:
        raise
    except Exception as error:
        if debug:
            log(traceback.format_exc())
        from pulsar_advisor.tables.failures import reported

        if (known := reported(error)) is not None:
            log(f"error: {known}")
            return known.exit_code
        log(f"error: unexpected failure: {type(error).__name__}: {error}; run again with --debug, and report it")
        return AdvisorError.exit_code
    return 0


def _open_streams() -> None:
    """What the caller has closed leads nowhere, so that no file takes its number; all can show every character.

    A width from the environment that holds no word, such as the 0 of a serial console, is none: rich would fill lines
    with nothing, or never end.
    """
    if not _WIDTH.fullmatch(os.environ.get("COLUMNS", "")):
        os.environ.pop("COLUMNS", None)
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(number, True)
    os.close(number)
    sys.stdout, sys.stderr = sys.stdout or os.fdopen(1, "w"), sys.stderr or os.fdopen(2, "w")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors=IN_ANY_ENCODING)


def main() -> None:
    """Run the command line of this process, and end it with the exit code."""
    _open_streams()
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        signal.signal(signal.SIGTERM, terminate)
    gc.set_threshold(*_RARE_COLLECTIONS)
    code = exit_code(sys.argv[1:])
    # The interpreter's last collections would walk every object that the libraries made, for a second.
    gc.freeze()
    sys.exit(code)
