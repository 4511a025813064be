"""Audits and lists of a large ledger: `bench_ledger.py [EVENTS PLANS]`, by default a million and 10,000 open ones.

The plans are proposed one by one. The events are those of finished runs of fifty steps, chained as the ledger chains
them and inserted in bulk. Each figure is that of a new process: seconds, processor time, and the highest memory.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from multiprocessing import get_context
from typing import Any, Final

from sqlalchemy import create_engine, insert, inspect, update

from pulsar_advisor.execution.consent.approval import propose
from pulsar_advisor.execution.ledger.approvals import approvals_of_plan
from pulsar_advisor.execution.ledger.chain import chained
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.opening import open_ledger
from pulsar_advisor.execution.ledger.tables import Base, Event, PlanSummary, Run, StepRecord
from pulsar_advisor.model.plans.sealed import digest_of
from results import RESULTS, conditions, record
from unit.execution.actors import ALICE, approved
from unit.execution.doubles import make_plan, unload_step

STEPS: Final = 50
IN_BULK: Final = 50_000
MEASURED: Final = """
import resource, sys, time
from pulsar_advisor.cli import main
began = time.monotonic()
try:
    main()
except SystemExit as ended:
    code = ended.code
usage = resource.getrusage(resource.RUSAGE_SELF)
used_s = usage.ru_utime + usage.ru_stime
print(f"{code} {time.monotonic() - began:.1f} {used_s:.1f} {usage.ru_maxrss // 1024}", file=sys.stderr)
"""


def fill(url: str, events: int, plans: int) -> None:
    """Make a ledger with open plans, and with runs until it has this many events."""
    with closing(open_ledger(url)) as ledger:
        for seed in range(1, plans + 1):
            propose(ledger, make_plan([unload_step()], seed=seed), ALICE)
        plan = approved(ledger, make_plan([unload_step()]))
        rows: dict[type[Base], list[dict[str, Any]]] = {Run: [], StepRecord: [], Event: []}
        for row in _history(ledger, digest_of(plan), events):
            rows[type(row)].append(_columns(row))
    with create_engine(url).begin() as connection:
        for table, values in rows.items():
            for first in range(0, len(values), IN_BULK):
                connection.execute(insert(table), values[first : first + IN_BULK])
        newest = {"last_event": rows[Event][-1]["id"]}
        connection.execute(update(PlanSummary).where(PlanSummary.digest == digest_of(plan)).values(newest))


def _history(ledger: Ledger, digest: str, events: int) -> Iterator[Base]:
    head = ledger.head()
    number, previous, steps = head.event, head.chain, count(1)
    approval = approvals_of_plan(ledger, digest)[0].id
    for run_id in count(1):
        mine = [_step(next(steps), run_id, place) for place in range(STEPS)]
        run = _run(run_id, digest, approval)
        yield from (run, *mine)
        told: list[tuple[str, str, list[Base]]] = [("run started", "on a host by process 1", [run, *mine])]
        for step in mine:
            told.append(("step sent", f"PUT /admin/v2/namespaces/{step.bundle}/unload", [step]))
            told.append(("step confirmed", step.observation, [step]))
        told.append(("run done", run.sentence, [run]))
        for kind, detail, written in told:
            number += 1
            event = Event(id=number, at_ms=number, digest=digest, run_id=run_id, step_id=None, kind=kind, detail=detail)
            event.rows = json.dumps({row.name: row.hash for row in written}, sort_keys=True)
            previous = event.chain = chained(previous, event.hash)
            yield event
        if number >= events:
            return


def _run(number: int, digest: str, approval: int) -> Run:
    return Run(
        id=number,
        digest=digest,
        cluster_name="live",
        approval_id=approval,
        state="done",
        lease=1,
        host="host",
        pid=1,
        process_namespace="",
        process_began="",
        heartbeat_at_ms=1,
        started_at_ms=1,
        ended_at_ms=2,
        sentence=f"{STEPS} of {STEPS} steps confirmed",
    )


def _step(number: int, run: int, place: int) -> StepRecord:
    return StepRecord(
        id=number,
        run_id=run,
        step_id=f"step-{place:03}",
        bundle=f"shop/orders/0x{place:08x}_0x{place + 1:08x}",
        state="confirmed",
        attempts=1,
        sent_at_ms=1,
        ended_at_ms=2,
        topic=None,
        observation="broker-2:8080 owns the bundle",
    )


def _columns(row: Base) -> dict[str, Any]:
    return {attribute.key: getattr(row, attribute.key) for attribute in inspect(type(row)).column_attrs}


def main(events: int, plans: int) -> None:
    """Print one table."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/ledger.sqlite"
        # In a separate process: the memory of a process that starts another is counted as the other's, too.
        filling = get_context("spawn").Process(target=fill, args=(url, events, plans))
        filling.start()
        filling.join()
        print("| events | open plans | command | exit code | seconds | processor s | MiB |")
        print("| -- | -- | -- | -- | -- | -- | -- |")
        place = ["--root", folder, "--cluster", "demo", "--ledger", url]
        for command in (["audit", "--ledger", url], ["plans", *place]):
            line = [sys.executable, "-c", MEASURED, *command]
            done = subprocess.run(line, capture_output=True, text=True, check=True)
            figures = done.stderr.splitlines()[-1].split(" ")
            print(f"| {events:,} | {plans:,} | `{command[0]}` | {' | '.join(figures)} |")
            work = f"`{command[0]}` of a ledger of {events:,} events and {plans:,} open plans"
            row = dict(zip(("s", "processor s", "peak MiB"), figures[1:], strict=True))
            record(RESULTS / "waiting-times.tsv", [{"work": work, **row, **conditions()}])


if __name__ == "__main__":
    main(*(int(size) for size in sys.argv[1:3] or ("1000000", "10000")))
