"""What each finding means: its status, one sentence, what to do, and how the call ends."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from pulsar_advisor.admin.clock import ClockDifference
from pulsar_advisor.admin.read_client import Migration
from pulsar_advisor.cli.screens import print_diagnosis
from pulsar_advisor.diagnosis.examination import BrokerAnswers, Examination, Lack, StoreAnswers, SystemTopicsAnswer
from pulsar_advisor.diagnosis.findings import diagnose, writable
from pulsar_advisor.documents.diagnosis import Diagnosis, Row
from pulsar_advisor.documents.document import as_json

MODULAR = "org.apache.pulsar.broker.loadbalance.impl.ModularLoadManagerImpl"
SETTINGS = {
    "loadManagerClassName": MODULAR,
    "loadBalancerEnabled": "true",
    "loadBalancerSheddingEnabled": "true",
    "loadBalancerAutoBundleSplitEnabled": "true",
    "loadBalancerLoadSheddingStrategy": "org.apache.pulsar.broker.loadbalance.impl.ThresholdShedder",
    "topicBundleAssignmentStrategy": "org.apache.pulsar.common.naming.ConsistentHashingTopicBundleAssigner",
}
ASKED = {"settings", "brokers", "leader", "tenants", "namespaces", "topic_names", "partitioned_topics"}


def broker(**fields: Any) -> BrokerAnswers:
    healthy = {
        "release": "4.0.8",
        "settings": dict(SETTINGS),
        "load_manager": "modular",
        "clock": ClockDifference(-0.5, 0.5),
    }
    return BrokerAnswers(**{**healthy, **fields})


def healthy(**fields: Any) -> Examination:
    return replace(
        Examination(
            admin_urls={"http://b1:8080": "4.0.8"},
            cluster_name="prod",
            brokers=("b1:8080", "b2:8080"),
            leader="b1:8080",
            asked=set(ASKED),
            answers={"b1:8080": broker(), "b2:8080": broker()},
            topics_asked_of="b1:8080",
            store=StoreAnswers(None, ("b1:8080", "b2:8080"), has_bundle_data=True),
        ),
        **fields,
    )


def both(**fields: Any) -> dict[str, BrokerAnswers]:
    return {"b1:8080": broker(**fields), "b2:8080": broker(**fields)}


def second(**fields: Any) -> dict[str, BrokerAnswers]:
    return {"b1:8080": broker(), "b2:8080": broker(**fields)}


def not_ok(found: Examination) -> list[Row]:
    return [row for row in diagnose(found).rows if row.status != "ok"]


def only(found: Examination) -> Row:
    (row,) = not_ok(found)
    assert row.what_to_do
    return row


def test_a_healthy_cluster_is_fit_and_every_check_is_one_line() -> None:
    diagnosis = diagnose(healthy())
    assert (not_ok(healthy()), diagnosis.fit, diagnosis.exit_code) == ([], True, 0)
    assert all("\n" not in row.sentence for row in diagnosis.rows)
    assert {row.check: row.sentence for row in diagnosis.rows}["surface.load_reports"] == (
        "load reports can be read at 2 of 2 brokers asked: usage and bundles' rates (needs a super-user)"
    )


def test_a_single_broker_is_counted_as_one() -> None:
    alone = healthy(
        brokers=("b1:8080",),
        answers={"b1:8080": broker()},
        store=StoreAnswers(None, ("b1:8080",), has_bundle_data=True),
    )
    counted = [row.sentence for row in diagnose(alone).rows if "1 broker" in row.sentence]
    assert [sentence for sentence in counted if "1 brokers" in sentence or "(s)" in sentence] == []
    assert "cluster 'prod' with 1 broker" in counted


@pytest.mark.parametrize(
    ("lack", "check", "exit_code"),
    [
        (Lack(None, "http://b1:8080: connection refused"), "admin_url", 1),
        (Lack(401, "http://b1:8080/…: 401, credentials required"), "credentials", 3),
        (Lack(404, "http://b1:8080/…: 404, nothing there"), "admin_url", 3),
    ],
)
def test_an_admin_url_that_does_not_serve(lack: Lack, check: str, exit_code: int) -> None:
    diagnosis = diagnose(Examination(admin_urls={"http://b1:8080": lack}))
    assert [(row.check, row.status, row.sentence) for row in diagnosis.rows] == [(check, "problem", lack.reason)]
    assert diagnosis.exit_code == exit_code


def test_where_the_only_admin_url_hangs_the_other_brokers_that_the_store_lists_are_named() -> None:
    silent = Lack(None, "http://b1:8080: no response within 30 s")
    store = StoreAnswers(None, ("b1:8080", "b2:8080", "b3:8080"), has_bundle_data=True)
    url, zookeeper = diagnose(Examination(admin_urls={"http://b1:8080": silent}, store=store)).rows
    assert (url.status, url.sentence) == ("problem", silent.reason)
    assert url.what_to_do == (
        "give the URL of another broker, or of several, with --admin-url: ZooKeeper lists b2:8080, b3:8080"
    )
    assert (zookeeper.check, zookeeper.status) == ("zookeeper", "ok")


def test_one_dead_admin_url_of_two_is_a_warning() -> None:
    urls = {"http://b1:8080": "4.0.8", "http://b9:8080": Lack(None, "no connection")}
    assert (only(healthy(admin_urls=urls)).check, diagnose(healthy(admin_urls=urls)).fit) == ("admin_url", True)


@pytest.mark.parametrize(
    ("surface", "status", "role"),
    [
        ("tenants", "problem", "a super-user"),
        ("namespaces", "problem", "the tenants' administrator or a super-user"),
        ("failure_domains", "warning", "a super-user"),
        ("topic_names", "warning", "a client of the namespaces, their tenants' administrator or a super-user"),
    ],
)
def test_a_forbidden_surface_names_the_role_it_needs(surface: str, status: str, role: str) -> None:
    row = only(healthy(lacks={surface: Lack(401, "401, the role lacks permission")}, asked=ASKED | {surface}))
    assert (row.check, row.status, row.what_to_do) == (f"surface.{surface}", status, f"use the credentials of {role}")


@pytest.mark.parametrize(
    ("found", "status", "sentence"),
    [
        (healthy(checks_permissions=True), "ok", "a super-user's: the brokers permit every verb"),
        (healthy(checks_permissions=False), "ok", "whoever reaches them may do anything"),
        (healthy(lacks={"settings": Lack(401, "401")}), "problem", "capture, brokers, apply, undo and verify will be"),
    ],
    ids=["super-user", "no authorization", "lesser role"],
)
def test_what_the_credentials_at_hand_permit_is_one_row(found: Examination, status: str, sentence: str) -> None:
    (row,) = (row for row in diagnose(found).rows if row.check == "permissions")
    assert row.status == status
    assert sentence in row.sentence


def test_settings_that_no_broker_gives_for_another_reason_say_nothing_of_permissions() -> None:
    found = diagnose(healthy(lacks={"settings": Lack(500, "500")}))
    assert "permissions" not in {row.check for row in found.rows}


def test_a_surface_of_one_broker_is_a_warning_and_of_all_a_problem() -> None:
    lacks = {"load_reports": Lack(500, "500 (boom)")}
    assert [row.status for row in not_ok(healthy(answers=second(lacks=lacks)))] == ["warning"]
    assert [row.status for row in not_ok(healthy(answers=both(lacks=lacks)))] == ["problem", "problem"]


def test_a_silent_broker_costs_its_part_and_all_silent_is_not_fit() -> None:
    silent = BrokerAnswers(lacks={"owned_bundles": Lack(None, "connection refused")})
    row = only(healthy(answers={"b1:8080": broker(), "b2:8080": silent}))
    assert (row.check, row.status) == ("broker", "warning")
    assert row.sentence == "b2:8080 does not respond at its own address: connection refused"
    silent_cluster = healthy(answers={"b1:8080": silent, "b2:8080": silent}, topics_asked_of=None)
    assert diagnose(silent_cluster).exit_code == 3


def test_a_cluster_whose_brokers_can_not_be_listed_claims_nothing_about_them() -> None:
    lacks = {"brokers": Lack(401, "401, the role lacks permission")}
    rows = diagnose(healthy(lacks=lacks, brokers=(), answers={}, topics_asked_of=None)).rows
    assert [row.check for row in rows if row.status == "problem"] == ["surface.brokers"]
    assert not {"surface.topic_stats", "surface.owned_bundles", "cluster"} & {row.check for row in rows}


@pytest.mark.parametrize(
    ("answers", "sentence"),
    [
        (second(clock=ClockDifference(41.5, 42.5)), "the clock of b2:8080 is at least 42 s ahead of this machine's"),
        (both(clock=ClockDifference(-91.0, -90.0)), "this machine's clock is at least 90 s ahead of all brokers'"),
        (
            {
                "b1:8080": broker(clock=ClockDifference(4, 4.5)),
                "b2:8080": broker(clock=ClockDifference(-4.5, -4)),
            },
            "the brokers' clocks differ by at least 8 s",
        ),
        (both(clock=None), "no broker's response has a date, so clocks can't be compared"),
    ],
)
def test_clocks_that_differ(answers: dict[str, BrokerAnswers], sentence: str) -> None:
    row = only(healthy(answers=answers))
    assert (row.check, row.status, row.sentence) == ("clock", "warning", sentence)


def test_brokers_that_disagree_are_named_with_their_values() -> None:
    settings = {
        "b1:8080": {**SETTINGS, "maxUnloadPercentage": "0.2"},
        "b2:8080": {**SETTINGS, "maxUnloadPercentage": "0.5"},
    }
    row = only(healthy(answers={name: broker(settings=values) for name, values in settings.items()}))
    assert (row.check, row.status) == ("settings.agree", "warning")
    assert row.sentence == "brokers disagree on maxUnloadPercentage: 0.2 at b1:8080; 0.5 at b2:8080"


def test_brokers_may_have_other_network_cards() -> None:
    settings = ({**SETTINGS, "loadBalancerOverrideBrokerNicSpeedGbps": speed} for speed in ("10.0", "25.0"))
    answers = {name: broker(settings=values) for name, values in zip(("b1:8080", "b2:8080"), settings, strict=True)}
    assert not_ok(healthy(answers=answers)) == []


@pytest.mark.parametrize(("percentage", "to_do"), [("0.2", "finish the upgrade"), ("0.3", "set the same value")])
def test_defaults_of_two_releases_ask_for_the_upgrade_only(percentage: str, to_do: str) -> None:
    older = broker(settings={**SETTINGS, "maxUnloadPercentage": percentage})
    later = broker(release="5.0.1", settings={**SETTINGS, "maxUnloadPercentage": "0.5"})
    rows = diagnose(healthy(answers={"b1:8080": older, "b2:8080": later})).rows
    (row,) = [row for row in rows if row.check == "settings.agree"]
    assert row.what_to_do.startswith(to_do)


def test_a_setting_that_only_a_newer_release_has_is_no_disagreement() -> None:
    assert not_ok(healthy(answers=second(settings={**SETTINGS, "maxUnloadPercentage": "0.2"}))) == []


def test_a_newer_release_beside_an_older_one_is_named() -> None:
    row = only(healthy(answers=second(release="4.2.4")))
    assert row.check == "release"
    assert "4.0.8 at b1:8080; 4.2.4 at b2:8080; the rules of 4.0.8 are applied" in row.sentence


@pytest.mark.parametrize(
    ("found", "check", "says"),
    [
        (healthy(brokers=(), answers={}, leader=None), "cluster", "cluster 'prod' has no active broker"),
        (healthy(asked=ASKED - {"namespaces"}), "surface.namespaces", "there is no tenant, so no namespace"),
        (
            healthy(answers=both(settings={**SETTINGS, "loadBalancerBrokerMaxTopics": "many"})),
            "settings",
            "loadBalancerBrokerMaxTopics='many', but Pulsar expects a whole number",
        ),
    ],
)
def test_a_cluster_of_which_nothing_can_be_judged_is_not_fit(found: Examination, check: str, says: str) -> None:
    row = only(found)
    assert (row.check, row.status, diagnose(found).exit_code) == (check, "problem", 3)
    assert says in row.sentence


def test_the_strategies_of_a_simple_cluster_are_not_judged_as_it_reads_none() -> None:
    settings = {
        **SETTINGS,
        "loadManagerClassName": MODULAR.replace("Modular", "Simple"),
        "loadBalancerLoadSheddingStrategy": "com.example.OwnShedder",
    }
    assert not_ok(healthy(answers=both(load_manager="simple", settings=settings))) == []


def test_a_misspelt_shedder_is_named_with_the_one_that_takes_its_place() -> None:
    key, misspelt = "loadBalancerLoadSheddingStrategy", "org.apache.pulsar.broker.loadbalance.impl.TresholdShedder"
    found = healthy(answers=both(release="3.0.7", settings={**SETTINGS, key: misspelt}))
    assert [row.sentence for row in not_ok(found) if row.check == "strategy"] == [
        f"{key} is {misspelt}, which brokers can't use: OverloadShedder takes its place"
    ]


def test_a_release_without_recommendations_can_still_be_captured() -> None:
    found = healthy(answers=both(release="2.10.5"))
    assert (only(found).check, diagnose(found).fit) == ("release.known", True)
    assert "older than 2.11" in only(found).sentence


def test_a_migration_between_load_managers_is_not_fit() -> None:
    row = only(healthy(answers=second(load_manager="extensible")))
    assert (row.check, row.status) == ("load_manager", "problem")
    assert "modular at b1:8080; extensible at b2:8080" in row.sentence


@pytest.mark.parametrize("class_name", [MODULAR, MODULAR.replace("Modular", "Extensible"), ""])
def test_brokers_that_run_the_simple_manager_in_place_of_another_are_named(class_name: str) -> None:
    settings = {**SETTINGS, "loadManagerClassName": class_name}
    rows = not_ok(healthy(answers=both(load_manager="simple", settings=settings)))
    (row,) = (row for row in rows if row.check == "load_manager")
    assert row.status == "warning"
    assert f"in place of {class_name or '(empty)'} at b1:8080, b2:8080" in row.sentence


def test_an_unknown_load_manager_is_not_fit() -> None:
    settings = {**SETTINGS, "loadManagerClassName": "org.apache.pulsar.broker.loadbalance.NoopLoadManager"}
    row = only(healthy(answers=both(load_manager=None, settings=settings)))
    assert (row.check, row.status) == ("load_manager", "problem")
    assert "NoopLoadManager is not modular, simple or extensible" in row.sentence


@pytest.mark.parametrize(
    ("key", "value", "check", "says"),
    [
        ("loadBalancerSheddingEnabled", "false", "switch", "Pulsar doesn't unload on its own"),
        ("loadBalancerEnabled", "false", "switch", "brokers write no reports"),
        ("loadBalancerLoadSheddingStrategy", "com.example.OwnShedder", "strategy", "com.example.OwnShedder"),
        ("loadBalancerLoadPlacementStrategy", "com.example.LeastResourceUsageWithWeight", "strategy", "com.example."),
        ("topicBundleAssignmentStrategy", "com.example.Assigner", "computable", "can't be computed from its hash"),
    ],
)
def test_settings_that_limit_what_can_be_told(key: str, value: str, check: str, says: str) -> None:
    row = only(healthy(answers=both(settings={**SETTINGS, key: value})))
    assert (row.check, row.status) == (check, "warning")
    assert says in row.sentence


@pytest.mark.parametrize(
    ("store", "check", "status", "says"),
    [
        (None, "zookeeper", "warning", "no view `published`, and averages start with one sample"),
        (StoreAnswers("ZooKeeper zk:2181: no session within 15 s"), "zookeeper", "problem", "no session"),
        (StoreAnswers(None, ("x:8080",), True), "zookeeper", "problem", "belongs to another cluster"),
        (StoreAnswers(None, ("x:8080",), True, "Oxia"), "oxia", "problem", "Oxia lists none of the brokers"),
        (StoreAnswers(None, ("b1:8080",), True), "zookeeper.brokers", "warning", "differ on b2:8080"),
        (StoreAnswers(None, ("b1:8080", "b2:8080"), False), "computable", "warning", "no averages of bundles yet"),
    ],
)
def test_what_the_metadata_store_adds_or_lacks(store: StoreAnswers | None, check: str, status: str, says: str) -> None:
    row = only(healthy(store=store))
    assert (row.check, row.status) == (check, status)
    assert says in row.sentence


def test_metadata_in_etcd_is_warned_of() -> None:
    row = only(healthy(answers=both(store_scheme="etcd")))
    assert (row.check, row.status) == ("metadata_store", "warning")


def test_a_configuration_store_of_its_own_is_named() -> None:
    rows = {row.check: row for row in diagnose(healthy(answers=both(configuration_scheme="zk"))).rows}
    assert rows["configuration_store"].status == "ok"
    assert "tenants and policies in another store (zk:)" in rows["configuration_store"].sentence


@pytest.mark.parametrize(
    ("phase", "kind", "statuses"),
    [
        ("COPYING", "ZooKeeper", ["warning"]),
        ("COPYING", "Oxia", ["warning", "problem"]),
        ("FAILED", "Oxia", ["problem"]),
        ("COMPLETED", "ZooKeeper", ["problem"]),
        ("COMPLETED", "Oxia", []),
        ("NOT_STARTED", "Oxia", []),
    ],
)
def test_what_a_migration_of_the_metadata_store_means(phase: str, kind: str, statuses: list[str]) -> None:
    found = healthy(migration=Migration(phase), store=StoreAnswers(None, ("b1:8080", "b2:8080"), True, kind))
    assert [(row.check, row.status) for row in not_ok(found)] == [("metadata_store", status) for status in statuses]


def test_where_no_store_was_given_the_brokers_own_is_named() -> None:
    row = only(healthy(answers=both(store_scheme="oxia"), store=None))
    assert row.sentence.startswith("no metadata store was given (the brokers use oxia:)")


def test_extensible_has_no_load_reports_and_says_so() -> None:
    found = healthy(answers=both(load_manager="extensible"), system_topics=SystemTopicsAnswer(None))
    assert only(found).sentence == "the Extensible load manager has no load reports and no averages"
    checks = {row.check for row in diagnose(found).rows}
    assert ("surface.load_reports" in checks, "surface.broker_metrics" in checks) == (False, True)


@pytest.mark.parametrize(
    ("answer", "status", "says"),
    [
        (None, "warning", "no service URL was given"),
        (SystemTopicsAnswer("pulsar://b1:6650: ConnectError"), "problem", "ConnectError"),
        (SystemTopicsAnswer(None), "ok", "can be read"),
    ],
)
def test_what_a_service_url_adds_under_extensible(answer: SystemTopicsAnswer | None, status: str, says: str) -> None:
    found = healthy(answers=both(load_manager="extensible"), system_topics=answer)
    (row,) = [row for row in diagnose(found).rows if row.check == "system_topics"]
    assert (row.status, says in row.sentence) == (status, True)


def test_the_table_and_the_verdict_are_printed() -> None:
    stream = io.StringIO()
    rows = (Row("clock", "warning", "b\x1b[2J is late", "set it"),)
    diagnosis = Diagnosis(cluster_name="prod", fit=True, reachable=True, rows=rows)
    print_diagnosis(diagnosis, Console(file=stream, width=120))
    assert "warning" in stream.getvalue()
    assert "b\\x1b[2J is late" in stream.getvalue()
    assert stream.getvalue().endswith("Ready for a capture; 1 warning.\n")


def test_the_document_says_the_same() -> None:
    document = as_json(diagnose(healthy()))
    assert (document["schema"], document["fit"], document["reachable"]) == ("pulsar-advisor/doctor/1", True, True)
    assert set(as_json(diagnose(healthy()).rows[0])) == {"check", "status", "sentence", "what_to_do"}


def test_a_root_that_can_be_written_is_said() -> None:
    diagnosis = diagnose(healthy(), writable("/data", None))
    assert (diagnosis.fit, diagnosis.rows[-1].check) == (True, "root")


def test_a_root_that_cannot_be_written_makes_a_capture_impossible() -> None:
    diagnosis = diagnose(healthy(), writable("/data", "can't write /data/.doctor: Permission denied"))
    assert (diagnosis.exit_code, diagnosis.rows[-1].status) == (3, "problem")
    assert "Permission denied" in diagnosis.rows[-1].sentence


def test_zookeeper_alone_is_fit_for_a_capture_and_says_what_can_not_be_computed() -> None:
    found = Examination(
        {}, "prod", ("b1:8080",), "b1:8080", store=StoreAnswers(None, ("b1:8080",), has_bundle_data=True)
    )
    assert (diagnose(found).fit, diagnose(found).exit_code) == (True, 0)
    assert only(found).check == "computable"
    assert "recommendations start from the load reports in ZooKeeper" in only(found).sentence


def test_a_store_without_the_configuration_is_not_enough_for_a_capture() -> None:
    store = StoreAnswers(None, ("b1:8080",), has_bundle_data=True, has_tenants=False)
    diagnosis = diagnose(Examination({}, "prod", ("b1:8080",), "b1:8080", store=store))
    (row,) = [row for row in diagnosis.rows if row.check == "configuration_store"]
    assert (row.status, diagnosis.exit_code) == ("problem", 3)
    assert "--configuration-metadata-store" in row.what_to_do


def test_a_zookeeper_that_does_not_tell_the_cluster_is_no_way_in() -> None:
    found = Examination(
        {}, store=StoreAnswers("ZooKeeper has the metadata of several clusters (a, b): give --admin-url too")
    )
    assert (only(found).check, only(found).status) == ("zookeeper", "problem")
    assert diagnose(found).exit_code == 1


@pytest.mark.parametrize(("leader", "release"), [("b1:8080", "4.0.8"), ("b2:8080", "5.0.1"), (None, "4.0.8")])
def test_while_brokers_are_upgraded_the_rules_are_the_leaders(leader: str | None, release: str) -> None:
    found = healthy(leader=leader, answers=second(release="5.0.1"))
    [said] = [row.sentence for row in not_ok(found) if row.check == "release"]
    assert said.endswith(f"the rules of {release} are applied")


@pytest.mark.parametrize(("listeners", "warns"), [(frozenset({""}), True), (frozenset({"internal"}), False)])
def test_older_brokers_without_the_listener_that_upgraded_ones_ask_for_are_named(
    listeners: frozenset[str], warns: bool
) -> None:
    upgraded = broker(release="5.0.1", internal_listener="internal")
    answers = {"b1:8080": upgraded, "b2:8080": broker(listeners=listeners)}
    rows = [row.sentence for row in diagnose(healthy(answers=answers)).rows if row.check == "release"]
    assert any(sentence.startswith("b2:8080: no advertised listener internal") for sentence in rows) is warns
