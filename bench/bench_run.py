"""Waiting times of an operator: `bench_run.py [BROKERS BUNDLES TOPICS]... [--demo ARCHIVE]`.

Measures one `run` of a recorded snapshot with all shedders and placement strategies, from a cold process; a second
`recommend` and `report` with another what-if; the same for synthetic clusters (`large_cluster.py`), captured
beforehand; and the answers that need neither Spark nor Great Expectations. Processor seconds cover Python, Java and
every child process, and other work on the machine hardly affects them; memory is the peak of their total.

The breakdown of a run comes from its output and from Spark's event log: seconds in which any job ran, the seconds and
processor seconds of the jobs' tasks, and the rest of a stage, in which plans are made: Python, its calls to Java, and
Spark's planner.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from bench_capture import CORES, Cost, watched, whole_capture
from large_cluster import CLUSTER, LargeCluster, served

from pulsar_advisor.admin.options import CaptureOptions
from pulsar_advisor.admin.transport import AdminConnection
from pulsar_advisor.snapshots.archive import export_snapshot
from pulsar_advisor.storage.root import Root

DEMO = Path(__file__).parents[1] / "tests" / "data" / "recorded" / "modular-4.0.8.tar"
SIZES = ((30, 1_000, 20_000),)
COMMAND = Path(sys.executable).with_name("pulsar-advisor")
WHAT_IF = "loadBalancerBrokerThresholdShedderPercentage=5"


class Jobs(NamedTuple):
    """An application's figures from Spark's event log."""

    jobs: int
    tasks: int
    busy_s: float
    """Seconds in which any job ran."""
    tasks_s: float
    tasks_processor_s: float
    written_bytes: int


def main() -> None:
    arguments = sys.argv[1:]
    demo = DEMO
    if "--demo" in arguments:
        at = arguments.index("--demo")
        demo = Path(arguments[at + 1])
        del arguments[at : at + 2]
    numbers = [int(argument) for argument in arguments]
    sizes = [tuple(numbers[at : at + 3]) for at in range(0, len(numbers), 3)] or SIZES
    java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True).stderr.splitlines()[0]
    print(f"{CORES} cores, load {os.getloadavg()[0]:.1f}, Python {platform.python_version()}, {java}\n")
    print("| work | s | processor s | MiB |\n|---|---|---|---|", flush=True)
    for arguments_ in (["--help"], ["recommend", "--shedder", "NoSuchShedder"], ["snapshots"]):
        with tempfile.TemporaryDirectory() as folder:
            show(f"`{' '.join(arguments_)}`", *measured([*arguments_, *_place(folder, arguments_)], fails=True))
    breakdowns = [all_stages("the recorded snapshot", demo)]
    for brokers, bundles, topics in sizes:
        with captured(brokers, bundles, topics) as archive:
            breakdowns.append(all_stages(f"{brokers:,} brokers × {bundles:,} bundles × {topics:,} topics", archive))
    print("\n" + "\n\n".join(breakdowns))


def _place(folder: str, arguments: list[str]) -> list[str]:
    return [] if arguments == ["--help"] else ["--root", folder, "--cluster", CLUSTER]


@contextmanager
def captured(brokers: int, bundles: int, topics: int) -> Iterator[Path]:
    """A synthetic cluster's snapshot as an archive."""
    with tempfile.TemporaryDirectory() as folder, served(LargeCluster(brokers, bundles, topics)) as broker:
        whole_capture(CaptureOptions(admin=AdminConnection(admin_urls=(f"http://{broker}",))), folder)
        root = Root(folder, CLUSTER)
        archive = Path(folder) / "snapshot.tar"
        export_snapshot(root, root.resolve("latest"), archive)
        yield archive


def all_stages(name: str, archive: Path) -> str:
    """Print the lines for one snapshot; returns the breakdown of its run."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "events"
        log.mkdir()
        said = Path(folder) / "said"
        place = ["--root", folder, "--cluster", CLUSTER]
        run = ["run", *place, "--from-archive", str(archive), "--shedder", "all", "--placement", "all"]
        show(f"`run` of {name}", *measured(run, said=said, event_log=log))
        again = ["recommend", *place, "--set", WHAT_IF]
        recommend, peak = measured(again)
        report, _ = measured(["report", *place])
        both = Cost(recommend.seconds + report.seconds, recommend.processor_s + report.processor_s)
        show("another `recommend`, and `report`", both, peak)
        stages = dict(re.findall(r"^(.+): ([\d.]+) s$", said.read_text(), re.MULTILINE))
        return breakdown(name, stages, _jobs(log))


def measured(
    arguments: list[str], *, said: Path | None = None, event_log: Path | None = None, fails: bool = False
) -> tuple[Cost, int]:
    """The cost of one command-line call, and its peak memory."""
    options = {"spark.eventLog.enabled": "true", "spark.eventLog.dir": f"file:{event_log}"} if event_log else {}
    options |= {"spark.eventLog.compress": "false", "spark.eventLog.rolling.enabled": "false"} if event_log else {}
    submit = " ".join(f"--conf {key}={value}" for key, value in options.items())
    script = f"{COMMAND} {' '.join(arguments)} 2> {said or '/dev/null'}" + (" || true" if fails else "")
    return watched(["env", f"PYSPARK_SUBMIT_ARGS={submit} pyspark-shell", "bash", "-c", script])


def show(what: str, cost: Cost, peak: int) -> None:
    print(f"| {what} | {cost.seconds:.1f} | {cost.processor_s:.1f} | {peak / 2**20:,.0f} |", flush=True)


def breakdown(name: str, stages: Mapping[str, str], jobs: Jobs) -> str:
    """The breakdown of one run's time, as lines."""
    on_spark = sum(float(stages[stage]) for stage in ("normalize", "validate", "recommend"))
    between = on_spark - jobs.busy_s
    return "\n".join(
        [
            f"Where a run of {name} spends its time:",
            "",
            *(f"* {stage}: {seconds} s" for stage, seconds in stages.items()),
            f"* in normalize, validate and recommend some job runs for {jobs.busy_s:.1f} s; {between:.1f} s are "
            "Python, its calls to Java, and plans",
            f"* {jobs.jobs} jobs, {jobs.tasks} tasks of {jobs.tasks_s:.1f} s together, {jobs.tasks_processor_s:.1f} "
            f"processor s in Java; {jobs.written_bytes / 2**20:.1f} MiB written",
        ]
    )


def _jobs(log: Path) -> Jobs:
    (file,) = log.iterdir()
    intervals: dict[int, list[int]] = {}
    tasks: list[dict[str, Any]] = []
    for line in file.read_text().splitlines():
        event = json.loads(line)
        if event["Event"] == "SparkListenerJobStart":
            intervals[event["Job ID"]] = [event["Submission Time"]]
        elif event["Event"] == "SparkListenerJobEnd":
            intervals[event["Job ID"]].append(event["Completion Time"])
        elif event["Event"] == "SparkListenerTaskEnd":
            tasks.append(event["Task Metrics"])
    return Jobs(
        jobs=len(intervals),
        tasks=len(tasks),
        busy_s=_covered(intervals.values()) / 1000,
        tasks_s=sum(task["Executor Run Time"] for task in tasks) / 1000,
        tasks_processor_s=sum(task["Executor CPU Time"] for task in tasks) / 1e9,
        written_bytes=sum(task["Output Metrics"]["Bytes Written"] for task in tasks),
    )


def _covered(intervals: Any) -> int:
    """Length of the union of intervals."""
    covered, until = 0, 0
    for begin, end in sorted(tuple(interval) for interval in intervals if len(interval) == 2):
        covered += max(0, end - max(begin, until))
        until = max(until, end)
    return covered


if __name__ == "__main__":
    main()
