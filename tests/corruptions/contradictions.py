"""What contradicts its neighbour: documents that are well formed one by one and can't be true together."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from corruptions.documents import ADMIN, CLUSTER, Documents, Text
from corruptions.one_value import ABSENT, set_value
from corruptions.victims import Victims

Contradiction = tuple[str, str, Callable[[Documents], None]]
CONTRADICTIONS: Final[dict[str, list[Contradiction]]] = {"modular": [], "simple": [], "extensible": []}
_SIMPLE: Final = "org.apache.pulsar.broker.loadbalance.impl.SimpleLoadManagerImpl"
_EXTENSIBLE: Final = "org.apache.pulsar.broker.loadbalance.extensions.ExtensibleLoadManagerImpl"
STRANGER: Final = "10.9.9.9:8080"
_RUNTIME: Final = f"{ADMIN}/brokers/configuration/runtime"
_REPORT: Final = f"{ADMIN}/broker-stats/load-report"
_TOPICS: Final = f"{ADMIN}/broker-stats/topics"


def contradiction(
    surface: str, *load_managers: str
) -> Callable[[Callable[[Documents, Victims], None]], Callable[[Documents, Victims], None]]:
    """Register one; its name says what is the matter."""

    def register(change: Callable[[Documents, Victims], None]) -> Callable[[Documents, Victims], None]:
        _register(surface, change.__name__.replace("_", " "), load_managers, change)
        return change

    return register


def _register(
    surface: str, kind: str, load_managers: Sequence[str], change: Callable[[Documents, Victims], None]
) -> None:
    for load_manager in load_managers or ("modular",):
        CONTRADICTIONS[load_manager].append((surface, kind, lambda found: change(found, Victims(found))))


def of_one_value(surface: str, document: Callable[[Documents, Victims], Any]) -> Callable[..., None]:
    """Returns what registers, a row each, contradictions of one value in this document of the victims."""

    def register(kind: str, where: str, becomes: Any, *load_managers: str) -> None:
        _register(
            surface, kind, load_managers, lambda found, victims: set_value(document(found, victims), where, becomes)
        )

    return register


_runtime = of_one_value("settings", lambda documents, victims: documents.of_brokers[victims.broker][_RUNTIME])
_runtime_of_leader = of_one_value("settings", lambda documents, _: documents.of_brokers[documents.leader][_RUNTIME])
_report = of_one_value("load report", lambda documents, victims: documents.report(victims.broker))
_policies = of_one_value(
    "policies", lambda documents, victims: documents.of_any[f"{ADMIN}/namespaces/{victims.namespace}"]
)
_isolation_policy = of_one_value("isolation policy", lambda documents, _: _isolation(documents))


# Identity: one cluster, and who answers for it.

_runtime("one broker names another cluster", "clusterName", "elsewhere")
_runtime("a broker has no cluster name", "clusterName", ABSENT)


@contradiction("settings")
def no_broker_has_a_cluster_name(documents: Documents, victims: Victims) -> None:
    for broker in documents.brokers:
        documents.of_brokers[broker][_RUNTIME]["clusterName"] = ""


_runtime_of_leader("the leader configures another load manager", "loadManagerClassName", _SIMPLE)
_runtime("a broker that does not lead configures another load manager", "loadManagerClassName", _EXTENSIBLE)
_runtime_of_leader("the leader has other thresholds", "loadBalancerBrokerThresholdShedderPercentage", "90")


@contradiction("load report")
def a_broker_sends_the_report_of_another(documents: Documents, victims: Victims) -> None:
    documents.of_brokers[victims.broker][_REPORT] = json.loads(json.dumps(documents.report(victims.coldest)))


@contradiction("load report")
def two_brokers_swap_their_reports(documents: Documents, victims: Victims) -> None:
    first, second = documents.of_brokers[victims.broker], documents.of_brokers[victims.coldest]
    first[_REPORT], second[_REPORT] = second[_REPORT], first[_REPORT]


@contradiction("topic statistics", "modular", "extensible")
def a_broker_sends_the_topics_of_another(documents: Documents, victims: Victims) -> None:
    documents.of_brokers[victims.broker][_TOPICS] = json.loads(json.dumps(documents.topics(victims.coldest)))


@contradiction("topic statistics", "modular", "extensible")
def a_broker_sends_no_topics(documents: Documents, victims: Victims) -> None:
    documents.of_brokers[victims.broker][_TOPICS] = {}


@contradiction("topic statistics", "modular")
def the_busiest_topic_is_missing(documents: Documents, victims: Victims) -> None:
    del documents.topics(victims.broker)[victims.namespace][victims.range]["persistent"][victims.topic_name]


@contradiction("topic statistics", "modular", "extensible")
def a_topic_is_in_a_bundle_that_its_hash_is_not_in(documents: Documents, victims: Victims) -> None:
    ranges = documents.topics(victims.broker)[victims.namespace]
    stats = ranges[victims.range]["persistent"].pop(victims.topic_name)
    ranges.setdefault("0xc0000000_0xffffffff", {}).setdefault("persistent", {})[victims.topic_name] = stats


@contradiction("topic statistics", "modular", "extensible")
def a_range_that_ends_before_it_begins(documents: Documents, victims: Victims) -> None:
    ranges = documents.topics(victims.broker)[victims.namespace]
    ranges["0x40000000_0x00000000"] = ranges.pop(victims.range)


@contradiction("topic statistics", "modular", "extensible")
def a_topic_of_another_namespace(documents: Documents, victims: Victims) -> None:
    topics = documents.topics(victims.broker)[victims.namespace][victims.range]["persistent"]
    topics["persistent://retail/payments/stray"] = topics.pop(victims.topic_name)


_report("the web address is another host", "webServiceUrl", "http://10.9.9.9:8080", "modular", "simple")


@contradiction("load report")
def the_web_address_is_another_broker_of_the_cluster(documents: Documents, victims: Victims) -> None:
    documents.report(victims.broker)["webServiceUrl"] = f"http://{victims.coldest}"


@contradiction("load report")
def the_web_address_has_another_port(documents: Documents, victims: Victims) -> None:
    documents.report(victims.broker)["webServiceUrl"] = f"http://{victims.broker.partition(':')[0]}:1"


_report(
    "another load manager than configured",
    "loadManagerClassName",
    _SIMPLE,
)
_report("a load manager that does not exist", "loadManagerClassName", "com.example.Nothing")
_report("another version than the broker answers", "brokerVersionString", "2.10.4")
_report("of the other kind", "loadReportType", "LoadReport")


@contradiction("load report")
def started_after_its_last_update(documents: Documents, victims: Victims) -> None:
    documents.report(victims.broker)["startTimestamp"] = documents.now_ms + 3_600_000


@contradiction("leader")
def the_leader_is_no_broker_of_the_cluster(documents: Documents, victims: Victims) -> None:
    documents.of_any[f"{ADMIN}/brokers/leaderBroker"] = {"brokerId": STRANGER, "serviceUrl": f"http://{STRANGER}"}
    documents.nodes["/loadbalance/leader"] = {"brokerId": STRANGER, "serviceUrl": f"http://{STRANGER}"}


@contradiction("leader")
def zookeeper_names_another_leader(documents: Documents, victims: Victims) -> None:
    documents.nodes["/loadbalance/leader"] = {"brokerId": victims.broker, "serviceUrl": f"http://{victims.broker}"}


@contradiction("active brokers", "modular", "extensible")
def a_broker_out_of_reach(documents: Documents, victims: Victims) -> None:
    documents.of_any[f"{ADMIN}/brokers/{CLUSTER}"] = [*documents.brokers, STRANGER]


@contradiction("active brokers")
def the_busiest_broker_is_not_registered(documents: Documents, victims: Victims) -> None:
    documents.of_any[f"{ADMIN}/brokers/{CLUSTER}"] = [one for one in documents.brokers if one != victims.broker]


@contradiction("active brokers")
def zookeeper_lists_brokers_of_another_cluster(documents: Documents, victims: Victims) -> None:
    for broker in documents.brokers:
        documents.nodes[f"/loadbalance/brokers/x{broker}"] = documents.nodes.pop(f"/loadbalance/brokers/{broker}")


@contradiction("active brokers")
def zookeeper_lacks_a_broker(documents: Documents, victims: Victims) -> None:
    del documents.nodes[f"/loadbalance/brokers/{victims.broker}"]


@contradiction("clock", "modular", "extensible")
def a_clock_an_hour_ahead(documents: Documents, victims: Victims) -> None:
    documents.clocks_ahead_s[victims.broker] = 3600.0


@contradiction("clock")
def a_clock_an_hour_behind(documents: Documents, victims: Victims) -> None:
    documents.clocks_ahead_s[victims.broker] = -3600.0


@contradiction("clock")
def every_clock_a_day_ahead(documents: Documents, victims: Victims) -> None:
    documents.clocks_ahead_s |= dict.fromkeys(documents.brokers, 86_400.0)


# Figures that can't be true together.


def _scaled(figures: dict[str, Any], factor: float) -> None:
    for rate in ("msgRateIn", "msgRateOut", "msgThroughputIn", "msgThroughputOut"):
        figures[rate] *= factor


@contradiction("load report")
def a_bundle_a_thousand_times_its_topics(documents: Documents, victims: Victims) -> None:
    _scaled(documents.report(victims.broker)["lastStats"][victims.bundle], 1000)


@contradiction("load report")
def a_total_that_its_bundles_do_not_add_up_to(documents: Documents, victims: Victims) -> None:
    _scaled(documents.report(victims.broker), 0.01)


@contradiction("load report")
def bytes_without_messages(documents: Documents, victims: Victims) -> None:
    documents.report(victims.broker)["lastStats"][victims.bundle]["msgRateIn"] = 0.0


_report("usage above the limit", "cpu.usage", 4 * 370.0)
_report("no cpu under load", "cpu.usage", 0.0)
_report("one core where the others have four", "cpu.limit", 100.0)
_report("a limit of zero", "cpu.limit", 0.0)
_report("a network card too slow for its traffic", "bandwidthIn.limit", 1.0)


@contradiction("load report")
def a_bundle_is_listed_without_figures(documents: Documents, victims: Victims) -> None:
    del documents.report(victims.broker)["lastStats"][victims.bundle]


@contradiction("load report")
def figures_of_a_bundle_that_is_not_listed(documents: Documents, victims: Victims) -> None:
    documents.report(victims.broker)["bundles"].remove(victims.bundle)


_report("more bundles than listed", "numBundles", lambda number: number + 100)
_report("more topics than in its bundles", "numTopics", lambda number: number + 1_000_000)
_report("more producers than in its bundles", "numProducers", lambda number: number + 1_000_000)
_report("more consumers than in its bundles", "numConsumers", lambda number: number + 1_000_000)
_report("a bundle gained that never was", "lastBundleGains", ["nobody/knows/0x00000000_0xffffffff"])


@contradiction("load report")
def the_busiest_bundle_gained_and_lost_at_once(documents: Documents, victims: Victims) -> None:
    documents.report(victims.broker)["lastBundleGains"] = [victims.bundle]
    documents.report(victims.broker)["lastBundleLosses"] = [victims.bundle]


@contradiction("load report")
def an_update_an_hour_from_now(documents: Documents, victims: Victims) -> None:
    documents.report(victims.broker)["lastUpdate"] = documents.now_ms + 3_600_000


@contradiction("load report")
def an_update_a_day_ago(documents: Documents, victims: Victims) -> None:
    documents.report(victims.broker)["lastUpdate"] = documents.now_ms - 86_400_000


@contradiction("load report")
def persistent_topics_disabled_on_every_broker(documents: Documents, victims: Victims) -> None:
    for broker in documents.brokers:
        documents.report(broker)["persistentTopicsEnabled"] = False


@contradiction("load report")
def a_key_twice(documents: Documents, victims: Victims) -> None:
    text = json.dumps(documents.report(victims.broker))
    documents.of_brokers[victims.broker][_REPORT] = Text(text[:-1] + ',"cpu":{"usage":1.0,"limit":400.0}}')


@contradiction("topic statistics")
def a_topic_twice(documents: Documents, victims: Victims) -> None:
    text = json.dumps(documents.topics(victims.broker))
    name = json.dumps(victims.topic_name)
    twice = text.replace(f"{name}: {{", f'{name}: {{"msgRateIn": 1e9}}, {name}: {{', 1)
    assert twice != text
    documents.of_brokers[victims.broker][_TOPICS] = Text(twice)


@contradiction("topic statistics", "modular", "extensible")
def a_topic_loaded_at_two_brokers(documents: Documents, victims: Victims) -> None:
    stats = documents.topics(victims.broker)[victims.namespace][victims.range]
    ranges = documents.topics(victims.coldest).setdefault(victims.namespace, {})
    ranges[victims.range] = json.loads(json.dumps(stats))


@contradiction("averages of a bundle")
def averages_a_thousand_times_the_figures(documents: Documents, victims: Victims) -> None:
    node = documents.nodes[f"/loadbalance/bundle-data/{victims.bundle}"]
    for term in ("shortTermData", "longTermData"):
        _scaled(node[term], 1000)


@contradiction("averages of a bundle")
def averages_of_a_busy_bundle_are_zero(documents: Documents, victims: Victims) -> None:
    node = documents.nodes[f"/loadbalance/bundle-data/{victims.bundle}"]
    for term in ("shortTermData", "longTermData"):
        _scaled(node[term], 0)


@contradiction("averages of a bundle")
def more_samples_than_can_be(documents: Documents, victims: Victims) -> None:
    documents.nodes[f"/loadbalance/bundle-data/{victims.bundle}"]["shortTermData"]["numSamples"] = 11


@contradiction("averages of a bundle")
def no_bundle_has_any(documents: Documents, victims: Victims) -> None:
    documents.nodes = {path: node for path, node in documents.nodes.items() if "/bundle-data/" not in path}


# Ownership, boundaries and policies.


@contradiction("owned bundles", "modular", "extensible")
def two_brokers_own_the_busiest_bundle(documents: Documents, victims: Victims) -> None:
    path = f"{ADMIN}/brokers/{CLUSTER}/{victims.coldest}/ownedNamespaces"
    documents.of_brokers[victims.coldest][path][victims.bundle] = {"is_active": True}


@contradiction("owned bundles", "modular", "extensible")
def a_bundle_of_no_namespace(documents: Documents, victims: Victims) -> None:
    path = f"{ADMIN}/brokers/{CLUSTER}/{victims.broker}/ownedNamespaces"
    documents.of_brokers[victims.broker][path]["nobody/knows/0x00000000_0xffffffff"] = {"is_active": True}


@contradiction("owned bundles", "modular", "extensible")
def a_name_that_is_no_bundle(documents: Documents, victims: Victims) -> None:
    path = f"{ADMIN}/brokers/{CLUSTER}/{victims.broker}/ownedNamespaces"
    documents.of_brokers[victims.broker][path]["what is this"] = {"is_active": True}


@contradiction("owned bundles", "modular", "extensible")
def a_broker_owns_nothing(documents: Documents, victims: Victims) -> None:
    path = f"{ADMIN}/brokers/{CLUSTER}/{victims.broker}/ownedNamespaces"
    documents.of_brokers[victims.broker][path] = {}


@contradiction("owner in ZooKeeper")
def zookeeper_names_another_owner(documents: Documents, victims: Victims) -> None:
    documents.nodes[f"/namespace/{victims.bundle}"]["httpUrl"] = f"http://{victims.coldest}"


@contradiction("owner in ZooKeeper")
def the_owner_is_a_stranger(documents: Documents, victims: Victims) -> None:
    documents.nodes[f"/namespace/{victims.bundle}"]["httpUrl"] = f"http://{STRANGER}"


def _boundaries(kind: str, *boundaries: str) -> None:
    def change(documents: Documents, victims: Victims) -> None:
        for document in _both_policies(documents, victims):
            document["bundles"]["boundaries"] = list(boundaries)

    _register("policies", kind, ("modular", "extensible"), change)


_boundaries("the boundaries have a gap", "0x00000000", "0x40000000", "0x40000000", "0xc0000000", "0xffffffff")
_boundaries("the boundaries descend", "0x00000000", "0x80000000", "0x40000000", "0xc0000000", "0xffffffff")
_boundaries("the boundaries end early", "0x00000000", "0x40000000", "0x80000000", "0xc0000000")
_boundaries("a boundary is no number", "0x00000000", "forty", "0x80000000", "0xc0000000", "0xffffffff")


@contradiction("policies")
def more_bundles_than_boundaries(documents: Documents, victims: Victims) -> None:
    for document in _both_policies(documents, victims):
        document["bundles"]["numBundles"] = 64


@contradiction("policies")
def local_policies_have_other_boundaries(documents: Documents, victims: Victims) -> None:
    node = documents.nodes[f"/admin/local-policies/{victims.namespace}"]
    node["bundles"] = {"boundaries": ["0x00000000", "0x80000000", "0xffffffff"], "numBundles": 2}


_policies("a namespace under load is deleted", "deleted", True, "modular", "extensible")
_policies("a namespace under load has migrated", "migrated", True, "modular", "extensible")
_policies(
    "a namespace under load is on other clusters only", "replication_clusters", ["elsewhere"], "modular", "extensible"
)
_policies("a namespace under load is allowed on other clusters only", "allowed_clusters", ["elsewhere"])


@contradiction("policies")
def a_namespace_under_load_is_not_listed(documents: Documents, victims: Victims) -> None:
    tenant = victims.namespace.partition("/")[0]
    documents.of_any[f"{ADMIN}/namespaces/{tenant}"].remove(victims.namespace)


@contradiction("anti-affinity group")
def two_sources_name_two_groups(documents: Documents, victims: Victims) -> None:
    documents.of_any[f"{ADMIN}/namespaces/{victims.namespace}/antiAffinity"] = Text("a")
    documents.nodes[f"/admin/local-policies/{victims.namespace}"]["namespaceAntiAffinityGroup"] = "b"


@contradiction("anti-affinity group")
def a_group_in_zookeeper_only(documents: Documents, victims: Victims) -> None:
    for namespace in (victims.namespace, "retail/payments"):
        documents.nodes[f"/admin/local-policies/{namespace}"]["namespaceAntiAffinityGroup"] = "b"


_isolation_policy("no broker matches", "primary", ["elsewhere.*"], "modular", "extensible")
_isolation_policy("an expression that java refuses", "primary", ["127.0.0.[1"], "modular", "extensible")
_isolation_policy("namespaces in an expression that java refuses", "namespaces", ["retail/(.*"])


@contradiction("isolation policy")
def two_policies_claim_one_namespace(documents: Documents, victims: Victims) -> None:
    policies = documents.of_any[f"{ADMIN}/clusters/{CLUSTER}/namespaceIsolationPolicies"]
    policies["second"] = {**_isolation(documents), "primary": [victims.coldest.partition(":")[0]]}


@contradiction("isolation policy")
def the_owner_is_not_allowed(documents: Documents, victims: Victims) -> None:
    _isolation(documents)["primary"] = [victims.coldest.partition(":")[0].replace(".", r"\.")]


_isolation_policy("a limit that is no number", "auto_failover_policy.parameters.min_limit", "many")
_isolation_policy("a negative limit", "auto_failover_policy.parameters.min_limit", "-1")
_isolation_policy("a threshold that is no number", "auto_failover_policy.parameters.usage_threshold", "many")
_isolation_policy("a threshold over a hundred percent", "auto_failover_policy.parameters.usage_threshold", "800")
_isolation_policy("a kind that does not exist", "auto_failover_policy.policy_type", "whatever")


@contradiction("failure domain")
def one_broker_in_two_domains(documents: Documents, victims: Victims) -> None:
    domains = documents.of_any[f"{ADMIN}/clusters/{CLUSTER}/failureDomains"]
    domains["zone-b"] = {"brokers": list(domains["zone-a"]["brokers"])}


@contradiction("partitions of a topic")
def fewer_partitions_than_there_are(documents: Documents, victims: Victims) -> None:
    documents.of_any[f"{ADMIN}/persistent/retail/orders/events/partitions"]["partitions"] = 2


# The cluster as a whole.


@contradiction("cluster", "modular", "simple", "extensible")
def without_any_traffic(documents: Documents, victims: Victims) -> None:
    for broker in documents.brokers:
        for _, _, _, stats in _each_topic(documents, broker):
            _scaled(stats, 0)
        if documents.load_manager != "extensible":
            report = documents.report(broker)
            _scaled(report, 0)
            for figures in (report.get("lastStats") or report["bundleStats"]).values():
                _scaled(figures, 0)
    for path, node in documents.nodes.items():
        if "/bundle-data/" in path:
            for term in ("shortTermData", "longTermData"):
                _scaled(node[term], 0)


@contradiction("cluster", "modular", "simple", "extensible")
def without_any_topic(documents: Documents, victims: Victims) -> None:
    without_any_traffic(documents, victims)
    for broker in documents.brokers:
        documents.of_brokers[broker][_TOPICS] = {}
        if documents.load_manager != "extensible":
            report = documents.report(broker)
            report |= {"numTopics": 0, "numConsumers": 0, "numProducers": 0}
            for figures in (report.get("lastStats") or report["bundleStats"]).values():
                figures |= {"topics": 0, "producerCount": 0, "consumerCount": 0}


@contradiction("cluster", "modular", "simple", "extensible")
def every_statistic_is_refused(documents: Documents, victims: Victims) -> None:
    for broker in documents.brokers:
        for part in ("load-report", "topics", "metrics"):
            documents.statuses[broker, f"{ADMIN}/broker-stats/{part}"] = 403


@contradiction("cluster", "modular", "extensible")
def every_broker_but_the_busiest_refuses_its_statistics(documents: Documents, victims: Victims) -> None:
    for broker in documents.brokers:
        if broker != victims.broker:
            for part in ("load-report", "topics", "metrics"):
                documents.statuses[broker, f"{ADMIN}/broker-stats/{part}"] = 403


@contradiction("cluster", "modular", "extensible")
def the_busiest_broker_refuses_its_statistics(documents: Documents, victims: Victims) -> None:
    for part in ("load-report", "topics", "metrics"):
        documents.statuses[victims.broker, f"{ADMIN}/broker-stats/{part}"] = 403


@contradiction("cluster", "modular", "extensible")
def nothing_is_owned(documents: Documents, victims: Victims) -> None:
    for broker in documents.brokers:
        documents.of_brokers[broker][f"{ADMIN}/brokers/{CLUSTER}/{broker}/ownedNamespaces"] = {}
    documents.nodes = {path: node for path, node in documents.nodes.items() if not path.startswith("/namespace/")}


@contradiction("cluster", "modular", "extensible")
def no_namespaces(documents: Documents, victims: Victims) -> None:
    documents.of_any[f"{ADMIN}/tenants"] = []


def _each_topic(documents: Documents, broker: str) -> Iterator[tuple[str, str, str, dict[str, Any]]]:
    for namespace, ranges in documents.topics(broker).items():
        for range_, domains in ranges.items():
            for topics in domains.values():
                for name, stats in topics.items():
                    yield namespace, range_, name, stats


def _isolation(documents: Documents) -> dict[str, Any]:
    policies: Mapping[str, Any] = documents.of_any[f"{ADMIN}/clusters/{CLUSTER}/namespaceIsolationPolicies"]
    policy: dict[str, Any] = policies["apart"]
    return policy


def _both_policies(documents: Documents, victims: Victims) -> Iterator[dict[str, Any]]:
    yield documents.of_any[f"{ADMIN}/namespaces/{victims.namespace}"]
    if f"/admin/local-policies/{victims.namespace}" in documents.nodes:
        yield documents.nodes[f"/admin/local-policies/{victims.namespace}"]
