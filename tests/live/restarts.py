"""A namespace that clients use while brokers are restarted, who owns its bundles, and what the restarts cost."""

from __future__ import annotations

from collections import Counter

from harness.cluster import LiveBroker, LiveCluster
from harness.configuration import CLUSTER_NAME
from harness.numbered_messages import TrafficReport
from live.plans import divide, topics_inside

NAMESPACE = "rolls/many"
BUNDLES = 12
BALANCED = {"loadBalancerSheddingEnabled": "true", "loadBalancerAutoBundleSplitEnabled": "true"}
GUARDED = tuple(BALANCED)


def divided(cluster: LiveCluster) -> list[str]:
    """A namespace of which clients use one topic in each bundle; the topics."""
    return [topics_inside(NAMESPACE, text, 1)[0] for text in divide(cluster, NAMESPACE, BUNDLES)]


def owners(cluster: LiveCluster) -> dict[str, str]:
    """Broker id by bundle."""
    owned = cluster.living_admin.owners(CLUSTER_NAME)
    return {bundle: broker for bundle, broker in owned.items() if bundle.startswith(f"{NAMESPACE}/")}


def broker_of(cluster: LiveCluster, broker_id: str) -> LiveBroker:
    return next(broker for broker in cluster.brokers if broker.broker_id == broker_id)


def overrides(cluster: LiveCluster) -> dict[str, str]:
    values = cluster.living_admin.read("/brokers/configuration/values")
    return {setting: values[setting] for setting in GUARDED if setting in values}


class Moves:
    """How often each bundle had another owner than when it was last looked at."""

    def __init__(self, cluster: LiveCluster) -> None:
        self._cluster = cluster
        self._before = owners(cluster)
        self.of_bundle = Counter[str]()

    def look(self) -> None:
        now = owners(self._cluster)
        self.of_bundle.update(bundle for bundle, owner in self._before.items() if now.get(bundle, owner) != owner)
        self._before |= now

    def figures(self, report: TrafficReport | None, *, killed: bool) -> str:
        """What it cost; of a killed broker, clients may learn after 30 s that it didn't take a message."""
        assert report is not None
        assert report.lost == 0
        assert killed or report.refused == 0
        gaps, most = sorted(report.gap_of_topic_s.values()), max(self.of_bundle.values(), default=0)
        return (
            f"{self.of_bundle.total()} moves of {BUNDLES} bundles, at most {most} of one; "
            f"longest gap of a topic {gaps[-1]} s, median {gaps[len(gaps) // 2]} s; lost {report.lost} of "
            f"{report.published}, {report.refused} refused; gaps {report.gaps}"
        )
