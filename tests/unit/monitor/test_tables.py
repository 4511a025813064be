"""Each row as `BrokerMonitor` computes it, and the two things that are put right."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any, Literal

import pytest
from rich.console import Console

from pulsar_advisor.cli.screens import print_tables
from pulsar_advisor.documents.broker_tables import PlannedUsage, Unknown
from pulsar_advisor.monitor.tables import (
    BrokerLoad,
    ClusterLoad,
    broker_rows,
    broker_tables,
    notes,
    overall,
)


def usage(used: float, limit: float) -> dict[str, float]:
    return {"usage": used, "limit": limit}


def modular(broker: str = "b1:8080", **fields: Any) -> BrokerLoad:
    report = {
        "cpu": usage(30, 100),
        "memory": usage(512, 1024),
        "directMemory": usage(0, 0),
        "bandwidthIn": usage(1, 8),
        "bandwidthOut": usage(1, -1),
        "maxResourceUsage": 0.25,
        "numTopics": 7,
        "numBundles": 5,
        "numProducers": 3,
        "numConsumers": 2,
        "lastBundleGains": ["t/n/0x00000000_0x80000000"],
        "lastBundleLosses": [],
        "msgRateIn": 10.0,
        "msgRateOut": 20.0,
        "msgThroughputIn": 1024.0,
        "msgThroughputOut": 2048.0,
        **fields,
    }
    averages = {
        "shortTermMsgRateIn": 1.0,
        "shortTermMsgRateOut": 2.0,
        "shortTermMsgThroughputIn": 512.0,
        "shortTermMsgThroughputOut": 512.0,
        "longTermMsgRateIn": 3.0,
        "longTermMsgRateOut": 4.0,
        "longTermMsgThroughputIn": 0.0,
        "longTermMsgThroughputOut": 0.0,
    }
    return BrokerLoad(broker, "modular", report, averages)


def simple() -> BrokerLoad:
    report = {
        "systemResourceUsage": {
            "cpu": usage(100, 400),
            "memory": usage(90, 100),
            "directMemory": usage(0, 100),
            "bandwidthIn": usage(2048, 10_000),
            "bandwidthOut": usage(1024, 0),
        },
        "allocatedCPU": 800.0,
        "allocatedMemory": 50.0,
        "allocatedBandwidthIn": 5000.0,
        "allocatedBandwidthOut": 1024.0,
        "allocatedMsgRateIn": 5.0,
        "allocatedMsgRateOut": 6.0,
        "numBundles": 4,
        "msgRateIn": 1.0,
        "msgRateOut": 2.0,
        "bundleGains": [],
        "bundleLosses": ["x", "y"],
    }
    return BrokerLoad("s1:8080", "simple", report)


def figures(load: BrokerLoad) -> dict[str, tuple[Any, ...]]:
    return {row.label: row.figures for row in broker_rows(load)}


def test_modular_rows() -> None:
    assert figures(modular()) == {
        # Binary32, as Java; no limit is idle; MAX is the broker's own figure.
        "SYSTEM": (30.000001907348633, 50.0, 0.0, 12.5, 0.0, 25.0),
        "COUNT": (7, 5, 3, 2, 1, 0),
        "LATEST": (10.0, 20.0, 30.0, 1.0, 2.0, 3.0),
        "SHORT": (1.0, 2.0, 3.0, 0.5, 0.5, 1.0),
        "LONG": (3.0, 4.0, 7.0, 0.0, 0.0, 0.0),
    }


def test_simple_rows() -> None:
    assert figures(simple()) == {
        "COUNT": (None, 4, None, None, 0, 2),
        "RAW SYSTEM": (25.0, pytest.approx(90, rel=1e-6), 0.0, pytest.approx(20.48, rel=1e-6), 0.0, pytest.approx(90)),
        "ALLOC SYSTEM": (100.0, 50.0, None, 50.0, 0.0, 100.0),
        "RAW MSG": (1.0, 2.0, 3.0, 2.0, 1.0, 3.0),
        "ALLOC MSG": (5.0, 6.0, 11.0, 5000 / 1024, 1.0, 6024 / 1024),
    }


def test_extensible_rows_have_what_a_broker_publishes_there() -> None:
    report = {"cpu": usage(55.5, 100), "maxResourceUsage": 0.555, "bundleCount": 9, "msgRateIn": 4.0, "msgRateOut": 4.0}
    rows = figures(BrokerLoad("e1:8080", "extensible", report))
    assert list(rows) == ["SYSTEM", "COUNT", "LATEST"]
    assert rows["SYSTEM"] == (55.5, None, None, None, None, pytest.approx(55.5))
    assert rows["COUNT"] == (None, 9, None, None, None, None)
    assert rows["LATEST"] == (4.0, 4.0, 8.0, None, None, None)


def test_the_overall_table_has_long_term_rate_and_throughput_under_their_own_headings() -> None:
    table = overall([modular(), simple()])
    first, second = table.brokers
    assert (first.long_term_msg_rate_per_s, first.throughput_kib_per_s, first.max_percent) == (7.0, 3.0, 25.0)
    assert (second.long_term_msg_rate_per_s, second.throughput_kib_per_s) == (11.0, 6024 / 1024)
    assert table.total.figures == (9, 33.0, 18.0, 3.0 + 6024 / 1024, pytest.approx(90))


def test_what_a_source_does_not_have_is_none_and_shown_as_a_dash() -> None:
    load = modular()
    without = BrokerLoad(load.broker, "modular", {**load.report, "msgRateIn": "NaN"})
    rows = {row.label: row.by_name() for row in broker_rows(without)}
    assert (rows["SHORT"]["msg_rate_per_s"], rows["LATEST"]["msg_rate_in_per_s"]) == (None, None)
    assert overall([without]).total.long_term_msg_rate_per_s is None
    assert "│         - │" in shown(ClusterLoad("here", 0, (without,), {}))


def test_the_document_names_every_figure_with_its_unit() -> None:
    tables = broker_tables(ClusterLoad("here", 0, (modular(),), {"b2:8080": "no answer"}))
    assert tables.brokers[0].rows["LATEST"]["throughput_in_kib_per_s"] == 1.0
    assert tables.overall.brokers[0].long_term_msg_rate_per_s == 7.0
    assert tables.missing == (Unknown(broker="b2:8080", reason="no answer"),)


def test_both_corrections_are_said_and_the_simple_managers_odd_figure_only_where_it_is() -> None:
    assert "swaps them" in notes(ClusterLoad("here", 0, (modular(),), {}))[0]
    assert len(notes(ClusterLoad("here", 0, (modular(),), {}))) + 1 == len(notes(ClusterLoad("h", 0, (simple(),), {})))


def test_the_terminal_shows_tables_what_is_missing_and_nothing_that_plays_tricks() -> None:
    text = shown(ClusterLoad("here", 0, (modular(),), {"b2\x1b[31m": "no answer"}))
    assert "All brokers" in text
    assert "b2\\x1b[31m: no answer" in text


def test_no_name_of_the_cluster_controls_a_terminal() -> None:
    planned = PlannedUsage(view="fresh", weights={"cpu": 1.0}, usage_ratios={"b2\x1b[31m:8080": 0.5})
    text = shown(ClusterLoad("cluster l\x1b[2Jive", 0, (), {}, planned), terminal=True)
    assert "cluster l\\x1b[2Jive" in text
    assert "b2\\x1b[31m:8080 50.0%" in text


@pytest.mark.parametrize("broker", ["[fd00::5]:8080", "[/b]:8080"])
def test_a_broker_id_in_brackets_is_shown_as_it_is(broker: str) -> None:
    text = shown(ClusterLoad("here", 0, (replace(modular(), broker=broker),), {}))
    assert f"│ {broker} │" in text


def test_a_long_broker_id_stays_on_one_line_where_output_goes_to_a_file() -> None:
    broker = f"pulsar-broker-17.{'very-long-' * 6}name.svc.cluster.local:8443"
    assert f"│ {broker} │" in shown(ClusterLoad("here", 0, (modular(broker),), {}))


def test_colours_appear_on_a_terminal_only() -> None:
    load = ClusterLoad("here", 0, (modular(maxResourceUsage=0.95),), {})
    assert "\x1b[" not in shown(load)
    assert "\x1b[31m" in shown(load, terminal=True)  # red: above Pulsar's overload threshold


def test_no_figure_is_cut_on_a_narrow_terminal() -> None:
    load = ClusterLoad("here", 0, (modular(msgRateIn=1_234_567.89, msgRateOut=12_345_678.9),), {})
    text = shown(load, terminal=True, width=40)
    assert "…" not in text
    assert "1234567.89" in text and "13580246.79" in text


def test_no_name_is_cut_however_long() -> None:
    host = f"{'b' * 60}.{'c' * 60}.{'d' * 60}.{'e' * 60}:8080"
    table = shown(ClusterLoad("here", 0, (modular(host),), {})).partition("All brokers")[2]
    assert host in "".join(line.split("│")[1].strip() for line in table.splitlines() if line.startswith("│"))


def shown(load: ClusterLoad, terminal: bool = False, width: int = 120) -> str:
    stream = io.StringIO()
    colours: Literal["standard"] | None = "standard" if terminal else None
    print_tables(load, Console(file=stream, width=width, force_terminal=terminal, color_system=colours))
    return stream.getvalue()


def test_the_maximum_is_said_to_be_unweighted_and_what_plans_start_from_is_named() -> None:
    load = ClusterLoad("here", 0, (modular(),), {})
    assert notes(load)[-1].startswith(
        "MAX % leaves the heap (MEMORY %) out and is unweighted, as brokers report it; plans weight the resources"
    )
    usage_ratios = {f"b{number}:8080": 0.9 - number / 10 for number in range(7)}
    planned = PlannedUsage(view="fresh", weights={"cpu": 1.0, "directMemory": 0.5}, usage_ratios=usage_ratios)
    assert notes(replace(load, planned=planned))[-1] == (
        "MAX % leaves the heap (MEMORY %) out and is unweighted, as brokers report it. Plans weight the "
        "resources (cpu 1, direct memory 0.5) and take the figures of the fresh view: b0:8080 90.0%, b1:8080 80.0%, "
        "b2:8080 70.0%, b3:8080 60.0%, b4:8080 50.0% and 2 more."
    )
    assert broker_tables(replace(load, planned=planned)).planned == planned


def test_where_no_brokers_usage_is_known_that_is_said() -> None:
    planned = PlannedUsage(view="fresh", weights={"cpu": 1.0}, usage_ratios={"b0:8080": None})
    assert planned.sentence.endswith("the figures of the fresh view: the usage of no broker is known.")
