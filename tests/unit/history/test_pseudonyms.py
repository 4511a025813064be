"""Days under other names: nobody is named in them, and they show the same."""

import json

import pyarrow as pa

from moments import FIRST, SECOND, THIRD, moment
from pulsar_advisor.history.day import fold
from pulsar_advisor.history.policies import ANTI_AFFINITY, ISOLATION, REPLICATION
from pulsar_advisor.history.pseudonyms import pseudonyms_of

A, B = "secret-a:8080", "secret-b:8080"
OTHER = "secret/n/0x00000000_0xffffffff"
EXCLUDED = "loadBalancerSheddingExcludedNamespaces"
POLICY = (ISOLATION, "secret-policy", '{"namespaces":["secret/.*"]}')
REPLICATED = (REPLICATION, "secret/n", "secret-us")


def a_day() -> dict[str, pa.Table]:
    usage = {A: 0.5, B: 0.25}
    settings = {"loadBalancerEnabled": "true", EXCLUDED: "secret/n,secret/gone"}
    first = moment(1, {FIRST: A, SECOND: A, OTHER: A}, usage=usage, settings=settings, policies=[POLICY, REPLICATED])
    grouped = (ANTI_AFFINITY, "secret/n", "secret-group")
    changed = (*POLICY[:2], '{"namespaces":["secret/n"]}')
    policies = [grouped, changed, REPLICATED]
    second = moment(
        2, {FIRST: B, THIRD: A, OTHER: A}, usage={A: 0.5}, settings=settings | {EXCLUDED: ""}, policies=policies
    )
    return dict(fold([first, second]))


def test_no_name_is_left() -> None:
    day = a_day()
    renamed = pseudonyms_of([day]).renamed(day)
    text = json.dumps({name: table.to_pylist() for name, table in renamed.items()})
    assert "secret" in json.dumps({name: table.to_pylist() for name, table in day.items()})
    assert "secret" not in text
    assert "t/n" not in text


def test_a_name_is_called_the_same_everywhere_and_what_was_sorted_is() -> None:
    day = a_day()
    renamed = pseudonyms_of([day]).renamed(day)
    names = renamed["names"]["name"].to_pylist()
    assert names == sorted(names)
    assert names[0] == "tenant-1/namespace-2/0x00000000_0xffffffff"
    assert renamed["brokers"]["id"].to_pylist() == ["broker-1", "broker-2", "broker-3"]
    [move] = [event for event in renamed["events"].to_pylist() if event["kind"] == "move"]
    assert (move["subject"], move["before"], move["after"]) == (names[1], "broker-2", "broker-3")


def test_a_setting_stays_but_for_the_namespaces_it_names() -> None:
    day = a_day()
    renamed = pseudonyms_of([day]).renamed(day)
    values = {row["key"]: row["value"] for row in renamed["settings"].to_pylist() if row["t"] == 0}
    excluded = "tenant-1/namespace-2,tenant-1/namespace-1"
    assert values == {"loadBalancerEnabled": "true", EXCLUDED: excluded}
    [change] = [event for event in renamed["events"].to_pylist() if event["kind"] == "setting"]
    assert (change["subject"], change["before"], change["after"]) == (EXCLUDED, excluded, "")


def test_figures_and_times_stay() -> None:
    day = a_day()
    renamed = pseudonyms_of([day]).renamed(day)
    for table in ("moments", "hosts", "load", "index"):
        assert renamed[table].equals(day[table])
    assert {table: rows.schema for table, rows in renamed.items()} == {
        table: rows.schema for table, rows in day.items()
    }


def test_what_a_later_release_says_is_no_name_that_gets_out() -> None:
    day = a_day()
    events = day["events"].to_pylist()
    later = [{**events[0], "kind": "evicted", "subject": "secret/n", "before": A, "after": None}]
    day["events"] = pa.Table.from_pylist(later, day["events"].schema)
    [event] = pseudonyms_of([day]).renamed(day)["events"].to_pylist()
    assert "secret" not in str(event)
