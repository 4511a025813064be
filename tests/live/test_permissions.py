"""Which role may do what, on brokers of every release that can be had: the table of docs/operations.md."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cluster import ClusterOptions, LiveCluster
from harness.permissions import RELEASES, options, permissions, recorded
from harness.shell import Shell, plain_connection
from live.conftest import StartCluster

pytestmark = [pytest.mark.live, pytest.mark.full]


@pytest.mark.parametrize("release", RELEASES)
def test_the_least_role_of_every_call_is_the_recorded_one(start_cluster: StartCluster, release: str) -> None:
    assert permissions(start_cluster(options(release))) == recorded()[release]


def test_no_verb_that_asks_brokers_works_for_the_administrator_of_a_tenant(
    start_cluster: StartCluster, tmp_path: Path
) -> None:
    cluster: LiveCluster = start_cluster(ClusterOptions(brokers=1, token_authentication=True, cpu_sensor=False))
    tenant = {"allowedClusters": ["live"], "adminRoles": ["tenant admin"]}
    cluster.admin.write("PUT", "/tenants/acme", body=tenant)
    token = tmp_path / "token"
    token.write_text(cluster.token_of("tenant admin"))
    shell = Shell(tmp_path / "root", (*plain_connection(cluster), "--token-file", str(token)))
    for verb in ("capture", "brokers"):
        answer = shell(verb, *shell.connection)
        assert (answer.code, "the role lacks permission" in answer.err) == (1, True), (verb, answer)
    assert not shell.root.exists()
    examined = shell("doctor", *shell.connection, "--json")
    assert examined.code == 3
    assert {row["check"]: row["status"] for row in examined.document["rows"]}["permissions"] == "problem"
