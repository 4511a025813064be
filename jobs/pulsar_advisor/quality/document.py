"""Prints `docs/checks.md`: `python -m pulsar_advisor.quality.document > docs/checks.md`."""

from __future__ import annotations

import sys

from pulsar_advisor.quality.checks import TABLES, Check, checks

_HEAD = """# Checks

Made by `python -m pulsar_advisor.quality.document` from the suites in `expectations/`; don't edit.

`validate` runs these on the fresh view of a snapshot, the one advice is made from; the published view is what the
leader acts on, right or wrong, and is used as it is.

* A failed **critical** check stops the line: exit code 3, no recommendation. So does a check that could not be
  evaluated; its result carries the reason in `error`.
* A failed **warning** below the scope `cluster` takes the brokers, namespaces or bundles of its failing rows out of the
  running: they get no step, and the report says so. One that fails for more than 100,000 rows is critical.
* A failed **info** changes nothing; it explains what the figures can't show.

A bundle without an owner is normal and fails no check. Checks that compare with an earlier snapshot (`figures_moved`,
`steady`) pass where there is none. What no check can see: [blind-spots.md](blind-spots.md). One entry at a terminal:
`pulsar-advisor validate --explain bundles.one_owner`.
"""


def checks_page() -> str:
    """The page as Markdown."""
    return "\n".join(
        [_HEAD, *(f"## {table}\n\n" + "\n".join(_entry(c) for c in checks() if c.table == table) for table in TABLES)]
    )


def _entry(check: Check) -> str:
    return (
        f"### {check.name}\n\n{check.title}\n\n* Severity {check.severity}, scope {check.scope}\n"
        f"* Why: {check.reason}\n* What to do: {check.action}\n* `{check.expectation}`\n"
    )


if __name__ == "__main__":
    sys.stdout.write(checks_page())
