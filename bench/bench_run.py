"""Waiting times of an operator: `bench_run.py [demo] [small] [medium] [large] [growth] [BROKERSxBUNDLESxTOPICS]...`.

Measures the answers that need neither Spark nor Great Expectations; then for each snapshot one `run` with all shedders
and placement strategies from a cold process, and a second `recommend` and `report` with another what-if. demo is the
recorded snapshot, small 30 brokers × 1,000 bundles × 20,000 topics (both by default), medium 100 × 65,000 × 650,000,
large 1,000 × 100,000 × 1,000,000, growth 10² to 10⁵ bundles with ten topics each (10⁶ with a million topics) and the
slope between them: the exponent of the bundles with which processor seconds grow. Synthetic clusters
(`large_cluster.py`) are captured beforehand; a word that ends in `.tar` is an archive of a snapshot, captured already.

Every snapshot's rows, each with its goal, and breakdown are printed as soon as they are known. A command that takes
longer than `BENCH_LIMIT_S` (by default 600) is ended, and its row says so. Processor seconds cover Python, Java and
every child process, and other work on the machine hardly affects them; memory is the peak of their total. The breakdown
of a run comes from its output, from Spark's event log and from Java's own counters. What is measured becomes rows of
docs/results/waiting-times.tsv and stages.tsv, for `make docs`.
"""

from __future__ import annotations

import json
import math
import os
import platform
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from bench_capture import CORES, Cost, processes, processor_seconds, resident_bytes, watched, whole_capture
from large_cluster import CLUSTER, LargeCluster, served

from pulsar_advisor.storage.archive import export_snapshot
from pulsar_advisor.storage.root import Root
from results import RESULTS, conditions, record

DEMO = Path(__file__).parents[1] / "tests" / "data" / "recorded" / "modular-4.0.8.tar"
SIZES = {"small": (30, 1_000, 20_000), "medium": (100, 65_000, 650_000), "large": (1_000, 100_000, 1_000_000)}
GROWTH = (
    (10, 100, 1_000),
    (10, 1_000, 10_000),
    (100, 10_000, 100_000),
    (1_000, 100_000, 1_000_000),
    (1_000, 1_000_000, 1_000_000),
)
GOALS = {"demo": "30 (45 processor s)", "small": "40", "medium": "90", "large": "150"}
"""Seconds that a whole run may take."""
ANSWER_GOAL, RECOMMEND_GOAL = "0.4", "8"
LIMIT_S = float(os.environ.get("BENCH_LIMIT_S", "600"))
COMMAND = Path(sys.executable).with_name("pulsar-advisor")
TIMED_OUT = 124
"""Exit code of `timeout`."""
WHAT_IF = "loadBalancerBrokerThresholdShedderPercentage=5"
STAGE = re.compile(r"^(.+): [\d.]+ s$")
COUNTERS = {
    "class loading": ("sun.cls.time",),
    "compiling to machine code": ("java.ci.totalTime",),
    "collecting garbage": ("sun.gc.collector.0.time", "sun.gc.collector.1.time"),
}
"""Java's counters, in nanoseconds."""


class Jobs(NamedTuple):
    """An application's figures from Spark's event log."""

    jobs: int
    tasks: int
    busy_s: float
    """Seconds in which any job ran."""
    tasks_s: float
    tasks_processor_s: float
    written_bytes: int


@dataclass
class Run:
    """What one `run` took."""

    name: str
    bundles: int = 0
    stages: dict[str, Cost] = field(default_factory=dict)
    processor_s: dict[str, float] = field(default_factory=dict)
    """By kind of process, then of Java's own by its counters."""
    peak_bytes: int = 0
    jobs: Jobs | None = None

    @property
    def total(self) -> Cost:
        return Cost(
            sum(cost.seconds for cost in self.stages.values()), sum(cost.processor_s for cost in self.stages.values())
        )


def main() -> None:
    words = sys.argv[1:] or ["demo", "small"]
    java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True).stderr.splitlines()[0]
    print(f"{CORES} cores, load {os.getloadavg()[0]:.1f}, Python {platform.python_version()}, {java}")
    heading()
    answers()
    grown: list[Run] = []
    for word in words:
        for number, size in enumerate(GROWTH if word == "growth" else [word]):
            print(f"\nLoad {os.getloadavg()[0]:.1f}.")
            heading()
            try:
                run = run_of(size)
            except (SystemExit, OSError) as error:
                print(f"\n{size}: {error}", flush=True)
                continue
            print("\n" + "\n".join(breakdown(run)), flush=True)
            record(RESULTS / "stages.tsv", [stages(run)])
            if word == "growth":
                grown.append(run)
                print("\n" + "\n".join(growth(grown)) * (number > 0), flush=True)


def heading() -> None:
    print("\n| work | goal s | s | processor s | MiB |\n|---|---|---|---|---|", flush=True)


def run_of(size: str | tuple[int, int, int]) -> Run:
    """The run of a word of the command line, or of a number of brokers, bundles and topics."""
    if size == "demo":
        return whole_run("the recorded snapshot", DEMO, GOALS["demo"])
    if isinstance(size, str) and size.endswith(".tar"):
        return whole_run(Path(size).stem, Path(size), goal_of(Path(size).stem))
    return synthetic_run(SIZES.get(size) or tuple(map(int, size.split("x"))) if isinstance(size, str) else size)


def goal_of(numbers: str) -> str:
    """The goal for a number of brokers, bundles and topics, as `100x65000x650000`."""
    named = {"x".join(map(str, size)): name for name, size in SIZES.items()}
    return GOALS.get(named.get(numbers, ""), "-")


def answers() -> None:
    """Print the lines for what needs no figures."""
    for arguments in (["--help"], ["recommend", "--shedder", "NoSuchShedder"], ["snapshots", "list"]):
        with tempfile.TemporaryDirectory() as folder:
            place = [] if arguments == ["--help"] else ["--root", folder, "--cluster", CLUSTER]
            script = f"{COMMAND} {' '.join([*arguments, *place])} || true"
            show(f"`{' '.join(arguments)}`", *watched(["bash", "-c", script]), ANSWER_GOAL)


def synthetic_run(size: Sequence[int]) -> Run:
    """Capture a synthetic cluster and run on its snapshot."""
    cluster = LargeCluster(*size)
    with tempfile.TemporaryDirectory() as folder, served(cluster) as broker:
        whole_capture(f"http://{broker}", folder)
        root = Root(folder, CLUSTER)
        archive = Path(folder) / "snapshot.tar"
        export_snapshot(root.resolve("latest"), archive)
        name = f"{cluster.brokers:,} brokers × {cluster.bundles:,} bundles × {cluster.topics:,} topics"
        run = whole_run(name, archive, goal_of("x".join(map(str, size))))
    run.bundles = cluster.bundles
    return run


def whole_run(name: str, archive: Path, goal: str) -> Run:
    """One `run` from an archive, and another `recommend` and `report`; prints their lines, with the goal."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "events"
        log.mkdir()
        place = ["--root", folder, "--cluster", CLUSTER]
        run = Run(name)
        try:
            watch_stages(run, ["run", *place, "--from-archive", str(archive)], log)
        except SystemExit:
            print(line(f"`run` of {name}", run.total, run.peak_bytes, goal), flush=True)
            raise
        show(f"`run` of {name}", run.total, run.peak_bytes, goal)
        run.jobs = _jobs(log)
        is_small = goal in (GOALS["demo"], GOALS["small"])
        for verb, more, aim in (
            ("recommend", ["--set", WHAT_IF], RECOMMEND_GOAL if is_small else "-"),
            ("report", [], "-"),
        ):
            limited = ["timeout", f"{LIMIT_S:.0f}", str(COMMAND), verb, *place, *more]
            show(f"another `{verb}` of {name}", *watched(limited), aim)
        return run


def watch_stages(run: Run, arguments: list[str], log: Path) -> None:
    """Run a command whose progress names each stage as it ends, with Spark's event log in a folder."""
    options = {"enabled": "true", "dir": f"file:{log}", "compress": "false", "rolling.enabled": "false"}
    submit = " ".join(f"--conf spark.eventLog.{key}={value}" for key, value in options.items())
    environment = {**os.environ, "PYSPARK_SUBMIT_ARGS": f"{submit} pyspark-shell"}
    used: dict[int, float] = {}
    began, before = time.perf_counter(), 0.0
    command = ["timeout", f"{LIMIT_S:.0f}", str(COMMAND), *arguments]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        watcher = threading.Thread(target=_sample, args=(process, used, run))
        watcher.start()
        assert process.stderr is not None
        said = []

        def ended(stage: str) -> None:
            nonlocal began, before
            now, processor_s = time.perf_counter(), sum(used.values())
            run.stages[stage] = Cost(now - began, processor_s - before)
            began, before = now, processor_s

        for line in process.stderr:
            said.append(line)
            if stage := STAGE.match(line):
                _count(process.pid, used)
                ended(stage[1])
                if stage[1] == "recommend":
                    run.processor_s |= _of_processes(process.pid, used)
        watcher.join()
        ended("verdict, and end of Spark" if not process.returncode else "what did not end")
    if process.returncode == TIMED_OUT:
        raise SystemExit(f"not finished within {LIMIT_S:.0f} s; stages: {run.stages}")
    if process.returncode:
        raise SystemExit("".join(said[-20:]))


def _sample(process: subprocess.Popen[str], used: dict[int, float], run: Run) -> None:
    while process.poll() is None:
        run.peak_bytes = max(run.peak_bytes, resident_bytes(_count(process.pid, used)))
        time.sleep(0.1)


def _count(pid: int, used: dict[int, float]) -> list[int]:
    """Note what each process of a command has used so far; those that have ended keep their last figure."""
    running = processes(pid)
    for one in running:
        used[one] = max(processor_seconds(one), used.get(one, 0.0))
    return running


def _of_processes(pid: int, used: dict[int, float]) -> dict[str, float]:
    """Processor seconds by kind of process, and of Java's by its counters."""
    _, python, *others = processes(pid)  # the first one is `timeout`
    java = next(one for one in others if Path(f"/proc/{one}/comm").read_text().strip() == "java")
    found = {"Python": used[python], "Java": used[java]}
    found["Python workers, and what starts Java"] = sum(used.values()) - sum(found.values())
    printed = subprocess.run(
        ["jcmd", str(java), "PerfCounter.print"], capture_output=True, text=True, check=True
    ).stdout
    counters = dict(line.split("=", 1) for line in printed.splitlines() if "=" in line)
    for what, names in COUNTERS.items():
        found[f"{what}, in Java"] = sum(int(counters.get(name, 0)) for name in names) / 1e9
    return found


def show(what: str, cost: Cost, peak: int, goal: str) -> None:
    """Print a line of what was measured, and keep it for the page."""
    print(line(what, cost, peak, goal), flush=True)
    figures = {"s": f"{cost.seconds:.1f}", "processor s": f"{cost.processor_s:.1f}", "peak MiB": f"{peak / 2**20:,.0f}"}
    record(RESULTS / "waiting-times.tsv", [{"work": what, **figures, **conditions()}])


def line(what: str, cost: Cost, peak: int, goal: str) -> str:
    return f"| {what} | {goal} | {cost.seconds:.1f} | {cost.processor_s:.1f} | {peak / 2**20:,.0f} |"


def stages(run: Run) -> dict[str, str]:
    """One run's seconds and processor seconds by stage, and its processor seconds by kind of process."""
    assert run.jobs is not None
    of_stages = {stage: f"{cost.seconds:.1f} ({cost.processor_s:.1f})" for stage, cost in run.stages.items()}
    processor_s = {**run.processor_s, "tasks, in Java": run.jobs.tasks_processor_s}
    del processor_s["collecting garbage, in Java"]
    return {
        "snapshot": run.name,
        **of_stages,
        **{what: f"({used:.1f})" for what, used in processor_s.items()},
        **conditions(),
    }


def breakdown(run: Run) -> Iterator[str]:
    """Where one run's time goes, as lines."""
    assert run.jobs is not None
    jobs, on_spark = run.jobs, sum(run.stages[stage].seconds for stage in ("normalize", "validate", "recommend"))
    yield f"Where a run of {run.name} spends its time:\n"
    yield "| stage | s | processor s |\n|---|---|---|"
    for stage, cost in run.stages.items():
        yield f"| {stage} | {cost.seconds:.1f} | {cost.processor_s:.1f} |"
    yield ""
    for what, seconds in run.processor_s.items():
        yield f"* {what}: {seconds:.1f} processor s"
    yield f"* tasks, in Java: {jobs.tasks_processor_s:.1f} processor s; {jobs.tasks} tasks of {jobs.jobs} jobs"
    yield f"* {jobs.written_bytes / 2**20:.1f} MiB written by tasks"
    yield (
        f"* in normalize, validate and recommend some job runs for {jobs.busy_s:.1f} s; {on_spark - jobs.busy_s:.1f} s "
        "are Python, its calls to Java, and plans"
    )


def growth(runs: list[Run]) -> Iterator[str]:
    """Processor seconds of every stage for each number of bundles, and the slopes between them."""
    stages = [stage for stage in runs[0].stages if stage != "start of Spark"]
    yield "Growth: processor seconds, and in brackets the slope from the row above\n"
    yield "| bundles | " + " | ".join(stages) + " |\n" + "|---" * (len(stages) + 1) + "|"
    yield (
        f"| {runs[0].bundles:,} | " + " | ".join(f"{runs[0].stages[stage].processor_s:.1f}" for stage in stages) + " |"
    )
    for before, run in pairwise(runs):
        cells = []
        for stage in stages:
            more, less = run.stages[stage].processor_s, before.stages[stage].processor_s
            slope = math.log(max(more, 0.1) / max(less, 0.1)) / math.log(run.bundles / before.bundles)
            cells.append(f"{more:.1f} ({slope:.2f})")
        yield f"| {run.bundles:,} | " + " | ".join(cells) + " |"


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
