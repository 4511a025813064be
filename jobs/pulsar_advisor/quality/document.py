"""Prints `docs/checks.md`: `python -m pulsar_advisor.quality.document > docs/checks.md`."""

from __future__ import annotations

import sys
from typing import Final

from pulsar_advisor.model.inputs import EVERY_STEP_READS, INPUTS, Input
from pulsar_advisor.placement.registry import PLACEMENTS
from pulsar_advisor.planning.fitness import EVERY_UNLOAD_READS
from pulsar_advisor.quality.checks import TABLES, Check, checks
from pulsar_advisor.shedding.registry import SHEDDERS
from pulsar_advisor.splitting.registry import SPLIT_ALGORITHMS, SPLIT_DECIDERS

_HEAD = """# Checks

Made by `python -m pulsar_advisor.quality.document` from the suites in `expectations/`; don't edit.

`validate` runs these on the fresh view of a snapshot, the one advice is made from; the published view is what the
leader acts on, right or wrong, and is used as it is. A snapshot from ZooKeeper alone has no other, so they run on that.

* A failed **critical** check stops the line: exit code 3, no recommendation. So does a check that could not be
  evaluated; its result carries the reason in `error`.
* A failed **warning** below the scope `cluster` takes the brokers, namespaces or bundles of its failing rows out of the
  running: they get no step, and the report says so. One that fails for more than 100,000 rows is critical.
* A failed **info** excludes nothing; it explains what the figures can't show. Steps that it concerns are less sure.

A bundle without an owner is normal and fails no check. Checks that compare with an earlier snapshot (`figures_moved`,
`steady`) pass where there is none. What no check can see: [blind-spots.md](blind-spots.md). One entry at a terminal:
`pulsar-advisor validate --explain bundles.one_owner`; how it went lately: `--trend bundles.one_owner`, or `--trend all`
for every check that did not always pass. The whole history is the table `checks` ([tables.md](tables.md)). `--data-docs
DIR` writes the result as Great Expectations' Data Docs too: pages that fetch nothing.

## What each strategy reads

A strategy that reads an input which the snapshot lacks is refused, with the input named; the others go on. A step rests
on the checks about what its strategies read, and on those about the snapshot as a whole: see
[confidence.md](confidence.md). Beside what the table says, every step reads {every_step}; every unload {every_unload},
for the filters of the load manager and for the prediction.

{strategies}

| input | columns | how fresh | without it |
|---|---|---|---|
{inputs}
"""


_STRATEGIES: Final = {
    "shedder": SHEDDERS,
    "placement strategy": PLACEMENTS,
    "split decider": SPLIT_DECIDERS,
    "split algorithm": SPLIT_ALGORITHMS,
}


def checks_page() -> str:
    """The page as Markdown."""
    head = _HEAD.format(
        every_step=_listed(EVERY_STEP_READS),
        every_unload=_listed(EVERY_UNLOAD_READS - EVERY_STEP_READS),
        strategies="\n".join(
            [
                "| strategy | as | reads |",
                "|---|---|---|",
                *(
                    f"| {entry.name} | {role} | {_listed(entry.reads) or 'nothing else'} |"
                    for role, entries in _STRATEGIES.items()
                    for entry in entries
                ),
            ]
        ),
        inputs="\n".join(_input_row(name) for name in INPUTS),
    )
    return "\n".join(
        [head, *(f"## {table}\n\n" + "\n".join(_entry(c) for c in checks() if c.table == table) for table in TABLES)]
    )


def _listed(reads: frozenset[Input]) -> str:
    return ", ".join(f"`{name}`" for name in INPUTS if name in reads)


def _input_row(name: Input) -> str:
    described = INPUTS[name]
    columns = ", ".join(f"`{column}`" for column in described.columns)
    return f"| `{name}` | {columns} | {described.freshness} | {described.substitute or 'refused'} |"


def _entry(check: Check) -> str:
    return (
        f"### {check.name}\n\n{check.title}\n\n* Severity {check.severity}, scope {check.scope}\n"
        f"* Why: {check.reason}\n* What to do: {check.action}\n* Rests on it: {check.resting}\n"
        f"* `{check.expectation}`\n"
    )


if __name__ == "__main__":
    sys.stdout.write(checks_page())
