"""Whether bundles are small and many enough to be spread, and may be moved at all."""

from __future__ import annotations

import numpy as np

from pulsar_advisor.lint.rule import Case, Violation, info, warning
from pulsar_advisor.model.cluster.isolation_policies import isolation_of, under_policies
from pulsar_advisor.model.text.some_of import count
from pulsar_advisor.splitting.limits import LEAST_TOPICS


@warning(
    source="Pulsar's documentation, 'Create namespaces and bundles'",
    remedy="split bundles of this namespace, or create it with more: pulsar-admin namespaces create --bundles",
    brokers=2,
)
def large_namespaces_have_bundles_for_all_brokers(case: Case) -> Violation | None:
    """A namespace with more load than a broker's fair share has at least as many bundles as there are brokers.

    A namespace can use only as many brokers as it has bundles, and of those its isolation policy leaves it. Where no
    bundle has two loaded topics, more bundles spread nothing.
    """
    bundles, names, brokers = case.state.bundles, case.state.namespaces.names, len(case.rows)
    total = float(case.bundle_throughput.sum())
    if not total:
        return None
    load = np.bincount(bundles.namespace, weights=case.bundle_throughput, minlength=len(names)) / total
    bundle_counts, isolation = case.state.bundle_counts, isolation_of(case.state, case.settings)
    # Those of each policy, and of NO_POLICY, the last row.
    usable = np.vstack([isolation.primary, isolation.shared])[:, case.rows].sum(axis=1)[isolation.policy_of_namespace]
    divisible = np.bincount(bundles.namespace[bundles.topics >= LEAST_TOPICS], minlength=len(names)) > 0
    few = np.flatnonzero((load > 1 / brokers) & (bundle_counts < usable) & divisible)
    if not len(few):
        return None
    worst = int(few[load[few].argmax()])
    return Violation(
        f"{names[worst]} has {load[worst]:.0%} of the throughput and {count(int(bundle_counts[worst]), 'bundle')} "
        f"for {usable[worst]} brokers"
    )


@info(
    source="Pulsar's documentation, 'Create namespaces and bundles'",
    remedy="raise defaultNumberOfNamespaceBundles, or create large namespaces with --bundles",
)
def new_namespaces_get_bundles_for_all_brokers(case: Case) -> Violation | None:
    """New namespaces get at least as many bundles as there are brokers.

    Until they are split, a namespace can use only as many brokers as it has bundles.
    """
    default, brokers = case.settings.default_number_of_namespace_bundles, len(case.rows)
    if default >= brokers:
        return None
    return Violation(f"defaultNumberOfNamespaceBundles is {default}, and the cluster has {brokers} brokers")


@info(
    source="apache/pulsar#19742; TransferShedder.isTransferable, TopKBundles (3.0.7 to 5.0.1)",
    remedy="set loadBalancerSheddingBundlesWithPoliciesEnabled=true if several brokers may serve these namespaces",
    load_managers=("extensible",),
)
def bundles_with_policies_are_balanced(case: Case) -> Violation | None:
    """Bundles of namespaces with isolation policies or anti-affinity groups are balanced too.

    TransferShedder leaves them where they are unless loadBalancerSheddingBundlesWithPoliciesEnabled is set.
    """
    if case.settings.load_balancer_shedding_bundles_with_policies_enabled:
        return None
    with_policies = under_policies(case.state, isolation_of(case.state, case.settings))
    share = case.share_of(with_policies[case.state.bundles.namespace])
    if not share:
        return None
    return Violation(
        f"{share:.0%} of the throughput is never balanced", {"loadBalancerSheddingBundlesWithPoliciesEnabled": "true"}
    )


@info(
    source="PIP-380 (apache/pulsar#23549)",
    remedy="shorten loadBalancerSheddingExcludedNamespaces",
    load_managers=("modular", "extensible"),
    brokers=1,
)
def excluded_namespaces_are_small(case: Case) -> Violation | None:
    """The namespaces excluded from shedding have less load than one broker's fair share.

    Their bundles stay where they are, and are placed without regard to the load.
    """
    excluded = case.state.namespaces.among(case.settings.load_balancer_shedding_excluded_namespaces)
    share = case.share_of(excluded[case.state.bundles.namespace])
    if share <= 1 / len(case.rows):
        return None
    return Violation(f"{share:.0%} of the throughput is excluded", {"loadBalancerSheddingExcludedNamespaces": ""})


@warning(
    source="LoadManagerShared.filterBrokersWithLargeTopicCount, BrokerMaxTopicCountFilter (2.11.0 to 5.0.1)",
    remedy="raise loadBalancerBrokerMaxTopics, or add brokers",
    load_managers=("modular", "extensible"),
)
def brokers_may_take_more_topics(case: Case) -> Violation | None:
    """Every broker may take more topics, as far as loadBalancerBrokerMaxTopics goes.

    Placement leaves full brokers out, whatever their load; where all are full, the Extensible manager finds none. To
    the Modular manager a broker with exactly that many isn't full.
    """
    limit, topics = case.settings.load_balancer_broker_max_topics, case.state.brokers.topics[case.rows]
    is_modular = case.state.load_manager == "modular"
    full = np.flatnonzero(topics > limit if is_modular else topics >= limit)
    if not len(full):
        return None
    most = f"more than {limit:,} topics" if is_modular else f"{limit:,} topics or more"
    return Violation(
        f"{most} on {case.share_of_brokers(full)}", {"loadBalancerBrokerMaxTopics": str(2 * max(int(topics.max()), 1))}
    )
