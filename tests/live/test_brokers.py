"""`brokers` shows what `pulsar-perf monitor-brokers` itself prints on the same cluster at the same time."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from harness import children
from harness.artifacts import class_path
from harness.cluster import ClusterOptions, LiveCluster
from harness.errors import LiveClusterUnavailable
from harness.load import running_load
from live.starting import StartCluster
from pulsar_advisor.admin.options import capture_options
from pulsar_advisor.documents.document import as_json
from pulsar_advisor.monitor.loads import load_now
from pulsar_advisor.monitor.tables import broker_tables as tables_of

Document = Mapping[str, Any]
Figures = Sequence[float | None]

pytestmark = [pytest.mark.live, pytest.mark.full]

OVERALL_LIMIT_S = 150
"""The tool prints its overall table every 60 s."""
HALF_A_DIGIT = 0.00501
"""The tool prints two decimals."""
LABEL = re.compile(r"[A-Z][A-Z ]*")


def ours(cluster: LiveCluster) -> Document:
    options = capture_options(admin={"admin_urls": tuple(cluster.admin_urls)}, zookeeper=cluster.zookeeper)
    return as_json(tables_of(load_now(options)))


@contextmanager
def monitor_brokers(cluster: LiveCluster, folder: Path, *arguments: str) -> Iterator[Path]:
    """The tool at work; its log."""
    try:
        jars = class_path(cluster.options.release, "pulsar-testclient")
    except LiveClusterUnavailable as error:
        pytest.skip(str(error))
    properties, log = folder / "empty.properties", folder / "monitor.log"
    properties.write_text("")
    logging = f"-Dlog4j.configurationFile={cluster.directory / 'log4j2.xml'}"
    requests = f"-Dharness.requests={folder / 'requests.log'}"
    tool = ["org.apache.pulsar.testclient.PulsarPerfTestTool", properties, "monitor-brokers", *arguments]
    process = children.start(["java", "-Xmx900m", logging, requests, "-cp", jars, *tool], log)
    try:
        yield log
    finally:
        children.kill(process)


def samples_until(shown: Callable[[], bool], cluster: LiveCluster) -> list[Document]:
    """Our document again and again, until the tool has shown something, and once more."""
    samples = [ours(cluster)]
    deadline = time.monotonic() + OVERALL_LIMIT_S
    while not shown():
        assert time.monotonic() < deadline, "monitor-brokers printed no table in time"
        time.sleep(0.5)
        samples.append(ours(cluster))
    return [*samples, ours(cluster)]


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")]


def broker_tables(log: str) -> Iterator[tuple[str, dict[str, list[float | None]]]]:
    """(broker, figures of each row by label) of every table that the tool printed for one broker."""
    for block in re.split(r"(?:Broker Data|Load Report) for ", log)[1:]:
        broker = block.partition(":\n")[0]
        lines = [cells(line) for line in block.splitlines() if line.startswith("||")]
        table = {}
        for headings, figures in zip(lines[::2], lines[1::2], strict=False):
            if not LABEL.fullmatch(headings[0]) or figures[0]:
                break
            table[headings[0]] = [float(cell) if cell else None for cell in figures[1:]]
        yield broker, table


def overall_rows(log: str) -> dict[str, list[float]]:
    """The rows of the last table over all brokers."""
    block = log.rpartition("Overall Broker Data:")[2]
    rows = [cells(line) for line in block.splitlines() if line.startswith("||")]
    return {row[0]: [float(cell) for cell in row[1:]] for row in rows[1:]}


def same(shown: Figures, figures: Figures) -> bool:
    return len(shown) == len(figures) and all(
        (a is None) == (b is None) and (a is None or b is None or abs(a - b) < HALF_A_DIGIT)
        for a, b in zip(shown, figures, strict=True)
    )


def row_of(sample: Document, broker: str, label: str) -> list[float | None]:
    (found,) = [entry for entry in sample["brokers"] if entry["broker"] == broker]
    return list(found["rows"][label].values())


def assert_shown_by_both(log: str, samples: Sequence[Document], *, ratio: bool) -> None:
    tables = list(broker_tables(log))
    assert {broker for broker, _ in tables} == {entry["broker"] for entry in samples[0]["brokers"]}
    for broker, table in tables:
        assert table.keys() == samples[0]["brokers"][0]["rows"].keys()
        for label, shown in table.items():
            assert any(same(shown, row_of(sample, broker, label)) for sample in samples), (broker, label, shown)
    for broker, (bundles, rate, swapped_throughput, swapped_long_term, maximum) in overall_rows(log).items():
        if broker == "TOTAL":  # in the order of its headings, also there
            swapped_throughput, swapped_long_term = swapped_long_term, swapped_throughput
        found = []
        for sample in samples:
            (row,) = [
                entry
                for entry in [*sample["overall"]["brokers"], sample["overall"]["total"]]
                if entry["broker"] == broker
            ]
            found.append([*list(row.values())[1:-1], row["max_percent"] / (100 if ratio else 1)])
        shown = [bundles, rate, swapped_long_term, swapped_throughput, maximum]
        assert any(same(shown, figures) for figures in found), (broker, shown)


def test_modular_tables_are_the_tools_with_the_swapped_columns_put_right(
    loaded_cluster: LiveCluster, tmp_path: Path
) -> None:
    with monitor_brokers(loaded_cluster, tmp_path, "--connect-string", loaded_cluster.zookeeper) as log:
        samples = samples_until(lambda: "Overall Broker Data" in log.read_text(), loaded_cluster)
        assert_shown_by_both(log.read_text(), samples, ratio=True)


def test_simple_tables_are_the_tools(start_cluster: StartCluster, tmp_path: Path) -> None:
    cluster = start_cluster(ClusterOptions(load_manager="simple", cpu_sensor=False))
    with running_load(cluster), monitor_brokers(cluster, tmp_path, "--connect-string", cluster.zookeeper) as log:
        samples = samples_until(lambda: "Overall Broker Data" in log.read_text(), cluster)
        assert_shown_by_both(log.read_text(), samples, ratio=False)


def test_extensible_figures_are_the_tools_as_far_as_it_has_them(start_cluster: StartCluster, tmp_path: Path) -> None:
    """The tool listens to a topic on which brokers publish changes above a tenth only, so its rates may lag by that."""
    cluster = start_cluster(ClusterOptions(load_manager="extensible", cpu_sensor=False))
    arguments = ("--extensions", "--connect-string", cluster.brokers[0].service_url)
    with running_load(cluster), monitor_brokers(cluster, tmp_path, *arguments) as log:
        samples = samples_until(lambda: "MAX %" in log.read_text(), cluster)
        tables = list(broker_tables(log.read_text()))
    assert tables
    for broker, table in tables:
        assert list(table) == ["SYSTEM", "COUNT", "LATEST"]
        assert any(same(table["COUNT"], row_of(sample, broker, "COUNT")) for sample in samples)
        assert any(table["LATEST"] == pytest.approx(row_of(sample, broker, "LATEST"), rel=0.15) for sample in samples)
