"""A day folds into tables that hold what its snapshots said, and unfolds into them again."""

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pytest

from moments import FIRST, SECOND, THIRD, moment
from pulsar_advisor.history.columns import DAY_TABLES
from pulsar_advisor.history.day import fold
from pulsar_advisor.history.events import ConfirmedStep
from pulsar_advisor.history.moment import Moment
from pulsar_advisor.history.unfold import moments_of


def lines(table: pa.Table, *columns: str) -> Sequence[tuple[object, ...]]:
    return list(zip(*(table[column].to_pylist() for column in columns), strict=True))


def test_a_bundles_figures_lie_side_by_side_in_order_of_time() -> None:
    tables = fold([moment(1, {SECOND: "b:8080", FIRST: "a:8080"}), moment(2, {FIRST: "b:8080", SECOND: None})])
    assert lines(tables["names"], "bundle", "name") == [(0, FIRST), (1, SECOND)]
    assert lines(tables["brokers"], "broker", "id") == [(0, "a:8080"), (1, "b:8080")]
    assert lines(tables["load"], "bundle", "t", "owner", "msg_in") == [
        (0, 0, 0, 101.0),
        (0, 1, 1, 2.0),
        (1, 0, 1, 1.0),
        (1, 1, -1, 102.0),
    ]


def test_a_bundle_that_comes_or_goes_has_rows_for_its_snapshots_only() -> None:
    tables = fold([moment(1, {FIRST: "a:8080"}), moment(2, {SECOND: "a:8080", THIRD: "a:8080"})])
    assert lines(tables["load"], "bundle", "t") == [(0, 0), (1, 1), (2, 1)]


def test_an_owner_that_never_reported_is_still_named() -> None:
    tables = fold([moment(1, {FIRST: "gone:8080"})])
    assert tables["brokers"]["id"].to_pylist() == ["a:8080", "b:8080", "gone:8080"]
    assert lines(tables["hosts"], "t", "broker", "usage") == [(0, 0, 0.5), (0, 1, 0.25)]


def test_a_policy_is_kept_where_it_changes() -> None:
    us, grouped = [("replication", "t/n", "us")], [("anti_affinity", "t/n", "group"), ("replication", "t/n", "us")]
    tables = fold(moment(minute, {}, policies=policies) for minute, policies in enumerate((us, us, grouped, us)))
    assert lines(tables["policies"], "t", "kind", "subject", "value") == [
        (0, "replication", "t/n", "us"),
        (2, "anti_affinity", "t/n", "group"),
        (3, "anti_affinity", "t/n", None),
    ]


def test_the_tables_are_as_declared_without_a_bundle_too() -> None:
    tables = fold([moment(1, {}, usage={"a:8080": 0.5})])
    assert {name: table.schema for name, table in tables.items()} == DAY_TABLES


def test_what_is_unfolded_folds_into_the_same_tables() -> None:
    tables = fold(
        [
            moment(
                1,
                {FIRST: "a:8080", SECOND: None},
                policies=[("replication", "t/m", "us"), ("replication", "t/n", "us")],
            ),
            moment(2, {THIRD: "b:8080"}, usage={"b:8080": 0.75}, policies=[("replication", "t/n", "eu,us")]),
            moment(3, {}, policies=[("replication", "t/n", "eu,us")]),
            moment(4, {THIRD: "gone:8080", FIRST: "a:8080"}),
        ]
    )
    again = fold(moments_of(tables, range(len(tables["moments"]))))
    assert {name: table.equals(again[name]) for name, table in tables.items()} == dict.fromkeys(tables, True)


def test_a_setting_that_a_moment_in_between_does_not_know_is_kept_once() -> None:
    settings = {"minUnloadMessage": "1000"}
    tables = fold([moment(1, {}, settings=settings), moment(2, {}), moment(3, {}, settings=settings)])
    assert lines(tables["settings"], "t", "key", "value") == [(0, "minUnloadMessage", "1000")]


def test_policies_that_a_moment_in_between_does_not_know_are_not_gone() -> None:
    policies = [("isolation_policy", "shop", "{}"), ("replication", "t/n", "us")]
    tables = fold([moment(1, {}, policies=policies), moment(2, {}), moment(3, {}, policies=policies)])
    assert lines(tables["policies"], "t", "kind", "subject", "value") == [(0, *one) for one in policies]


def test_a_change_is_seen_though_a_snapshot_in_between_does_not_know_what_changed() -> None:
    before = moment(1, {FIRST: "b:8080"}, settings={"minUnloadMessage": "10"}, policies=[("replication", "t/n", "us")])
    unknown = replace(moment(2, {FIRST: "b:8080"}), leader=None)
    after = moment(3, {FIRST: "b:8080"}, settings={"minUnloadMessage": "1"}, policies=[("replication", "t/n", "eu")])
    events = fold([before, unknown, replace(after, leader="a:8080")])["events"]
    assert lines(events, "t", "kind", "before", "after") == [
        (2, "leader", "b:8080", "a:8080"),
        (2, "replication", "us", "eu"),
        (2, "setting", "10", "1"),
    ]


AWAY = [moment(1, {FIRST: "a:8080"}), moment(2, {FIRST: None}), moment(3, {FIRST: None}), moment(4, {FIRST: "b:8080"})]
"""A bundle that two snapshots caught between its unload and its next look-up."""


@pytest.mark.parametrize(
    ("minute", "cause"), [(1, "plan:c8b31b82"), (3, "plan:c8b31b82"), (0, "unknown")], ids=["first", "later", "before"]
)
def test_a_move_is_seen_though_no_broker_had_the_bundle_meanwhile(minute: int, cause: str) -> None:
    step = ConfirmedStep(moment(minute, {}).at_ms + 1, FIRST, "c8b31b82")
    assert lines(fold(AWAY, steps=[step])["events"], "t", "kind", "before", "after", "cause") == [
        (3, "move", "a:8080", "b:8080", cause)
    ]


@pytest.mark.parametrize(
    ("meanwhile", "cause"),
    [
        (moment(2, {FIRST: None}, started={"a:8080": 2}), "restart"),
        (moment(2, {FIRST: None}, usage={"b:8080": 0.25}, started={"a:8080": 2}), "restart"),
        (moment(2, {FIRST: None}, started={"a:8080": 1}), "unknown"),
    ],
    ids=["restarted", "gone", "unloaded before"],
)
def test_a_bundle_that_its_owners_restart_left_without_one_moved_by_that(meanwhile: Moment, cause: str) -> None:
    before, later = moment(1, {FIRST: "a:8080"}, started={"a:8080": 1}), {"started": {"a:8080": 2}}
    tables = fold([before, meanwhile, moment(3, {FIRST: None}, **later), moment(4, {FIRST: "b:8080"}, **later)])
    assert [event["cause"] for event in tables["events"].to_pylist() if event["kind"] == "move"] == [cause]


def test_a_bundle_that_comes_back_to_its_owner_has_not_moved() -> None:
    assert not len(fold([*AWAY[:3], moment(4, {FIRST: "a:8080"})])["events"])
