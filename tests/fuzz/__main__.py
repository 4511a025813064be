"""Breaks documents for as long as it is told to, and ends at the first that a decoder neither reads nor refuses.

    python -m fuzz [--seconds 60] [--seed N] [--only TARGET ...]

All targets get the same share of the time. Hypothesis shrinks what it finds, and keeps it in .hypothesis, so that the
next run begins with it; the document is left in build/fuzz.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
import traceback
import warnings
from collections.abc import Sequence
from pathlib import Path

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.errors import HypothesisWarning

from fuzz.broken import Fault, fault_free
from fuzz.targets import TARGETS

EXAMPLES = 50
"""Between two looks at the clock."""


def main(arguments: Sequence[str]) -> int:
    """Fuzz, print a line for each target, and return 1 if one failed."""
    parser = argparse.ArgumentParser(prog="fuzz", description="Break documents until the time is over.")
    parser.add_argument("--seconds", type=float, default=60.0, help="for all targets together (default: 60)")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(2**32))
    parser.add_argument("--only", nargs="+", choices=list(TARGETS), default=list(TARGETS), metavar="TARGET")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore", HypothesisWarning)  # that a document is large
    print(f"seed {options.seed}", flush=True)
    share_s = options.seconds / len(options.only)
    failed = 0
    for name in options.only:
        end, rounds = time.monotonic() + share_s, 0
        try:
            while time.monotonic() < end:
                _break(name, options.seed + rounds)
                rounds += 1
        except Fault as fault:
            print(_told(name, fault), flush=True)
            failed += 1
        print(f"{name}: {rounds * EXAMPLES} documents", flush=True)
    print(f"{failed} of {len(options.only)} decoders failed")
    return 1 if failed else 0


def _told(name: str, fault: Fault) -> str:
    """What happened, where, and where the document lies."""
    kept = Path("build", "fuzz", name.replace("/", "-").replace(" ", "-"))
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_bytes(fault.body)
    cause = fault.__cause__
    frames = traceback.format_tb(cause.__traceback__ if cause else None)[-3:]
    return f"{fault}\n{''.join(frames)}{type(cause).__name__}: {str(cause)[:500]}\nthe document is in {kept}"


def _break(name: str, number: int) -> None:
    phases = (Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink)
    limits = settings(
        max_examples=EXAMPLES,
        deadline=None,
        phases=phases,
        suppress_health_check=list(HealthCheck),
        print_blob=False,
        report_multiple_bugs=False,
    )
    limits(seed(number)(fault_free(name)))()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
