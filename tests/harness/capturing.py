"""The product's own capture of a test cluster, in this process and without progress."""

from __future__ import annotations

from captures import capture
from harness.cluster import LiveCluster
from pulsar_advisor.admin.options import capture_options
from pulsar_advisor.storage.root import Root, Snapshot


def take_snapshot(cluster: LiveCluster, root: Root, listen_s: int | None = None) -> Snapshot:
    """Capture every surface of a cluster without authentication.

    `listen_s`: how long Extensible brokers may take to publish what their leader sees; by default as long as an
    operator's capture gives them.
    """
    extensible = cluster.options.load_manager == "extensible"
    options = capture_options(
        admin={"admin_urls": tuple(cluster.admin_urls)},
        zookeeper=cluster.zookeeper,
        service_url=cluster.service_url if extensible else None,
        listen_s=listen_s,
    )
    return capture(options, root)
