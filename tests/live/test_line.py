"""The whole line through the shell on real brokers: capture → … → report, then approve, apply, verify, and refusals."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness.cluster import ClusterOptions, LiveCluster
from harness.configuration import CLUSTER_NAME
from harness.load import running_load
from harness.shell import QUICK, Answer, Shell, plain_connection
from harness.skew import wait_for_skew
from live.starting import StartCluster, with_cpu_skew

pytestmark = [pytest.mark.live, pytest.mark.slow]


@dataclass(frozen=True)
class Recommended:
    """A recommendation made from the live cluster, and its advised plan."""

    cluster: LiveCluster
    shell: Shell
    snapshot: str
    path: Path
    plan: dict[str, Any]

    def step(self, action: str) -> dict[str, Any]:
        return next(step for step in self.plan["steps"] if step["action"] == action and step["executable"])

    def apply(self, *words: str, path: Path | None = None, name: str = "live") -> Answer:
        return self.shell("apply", str(path or self.path), *self.shell.connection, *words, name=name)


@pytest.fixture(scope="module")
def recommended(skewed_cluster: LiveCluster, tmp_path_factory: pytest.TempPathFactory) -> Recommended:
    return _recommended(skewed_cluster, Shell(tmp_path_factory.mktemp("root"), plain_connection(skewed_cluster)))


def _recommended(cluster: LiveCluster, shell: Shell) -> Recommended:
    strategies = ("--shedder", "ThresholdShedder", "--placement", "LeastLongTermMessageRate", "--as", "olive")
    ran = shell("run", *shell.connection, *strategies, "--master", "local[2]", "--json")
    assert ran.code == 0, ran.err
    advice = ran.document["advice"]
    path = shell.root / "plans" / "cluster=live" / f"snapshot={ran.document['snapshot']}" / advice["plan"]
    return Recommended(cluster, shell, ran.document["snapshot"], path, json.loads(path.read_bytes()))


def test_the_plan_unloads_from_the_hot_broker_and_another_splits_the_bundle_over_the_limit(
    recommended: Recommended,
) -> None:
    before = recommended.plan["predicted"]["before"]["brokers"]
    hottest = max(before, key=lambda broker: before[broker]["usage_ratio"])
    assert {(step["action"], step["source"]) for step in recommended.plan["steps"]} == {("unload", hottest)}
    (splitting,) = recommended.path.parent.glob("BundleSplitterTask--*.json")
    (split,) = json.loads(splitting.read_bytes())["steps"]
    assert (split["action"], split["algorithm"], split["executable"]) == ("split", "range_equally_divide", True)


def test_the_report_is_one_page_without_a_network(recommended: Recommended) -> None:
    reports = recommended.shell.root / "reports" / "cluster=live" / f"snapshot={recommended.snapshot}"
    page = (reports / "report.html").read_text()
    assert recommended.plan["digest"] in page
    assert "http://" not in page.replace("http://www.w3.org/", "")


def test_what_may_not_be_applied_is_refused_and_nothing_is_written(recommended: Recommended, tmp_path: Path) -> None:
    cluster, digest = recommended.cluster, recommended.plan["digest"]
    before = len(cluster.write_requests())

    unapproved = recommended.apply()
    assert (unapproved.code, "has no approval" in unapproved.err) == (4, True)

    other = digest[:-1] + ("0" if digest[-1] != "0" else "1")
    wrong = recommended.shell("approve", str(recommended.path), "--digest", other, "--as", "bob", *QUICK)
    assert (wrong.code, "is not the plan's digest" in wrong.err) == (4, True)

    changed = tmp_path / recommended.path.name
    changed.write_bytes(recommended.path.read_bytes().replace(b'"seed":0', b'"seed":1'))
    assert recommended.apply(path=changed).code == 4

    own = recommended.shell("approve", str(recommended.path), "--digest", digest, "--as", "olive")
    assert (own.code, "another person" in own.err) == (4, True)

    assert len(cluster.write_requests()) == before


def test_an_approved_plan_is_carried_out_once_and_the_brokers_show_it(recommended: Recommended) -> None:
    shell, cluster, digest = recommended.shell, recommended.cluster, recommended.plan["digest"]
    unload = recommended.step("unload")
    approved = shell("approve", str(recommended.path), "--digest", digest, "--as", "bob", *QUICK)
    assert approved.code == 0, approved.err

    writes = len(cluster.write_requests())
    too_old = recommended.apply("--max-age", "0s")
    assert (too_old.code, "old" in too_old.err) == (4, True)
    shown = recommended.apply("--dry-run", "--json")
    assert [step["state"] for step in shown.document["steps"]] == ["pending"] * len(shown.document["steps"])
    assert len(cluster.write_requests()) == writes

    applied = recommended.apply("--json")
    assert applied.code == 0, applied.err
    assert {step["state"] for step in applied.document["steps"]} == {"confirmed"}
    owners = cluster.admin.owners(CLUSTER_NAME)
    assert owners[f"{unload['namespace']}/{unload['bundle']}"] == unload["destination"]

    writes = len(cluster.write_requests())
    again = recommended.apply("--json")
    assert (again.code, again.document["outcome"]) == (0, "nothing_to_do")
    assert len(cluster.write_requests()) == writes

    verified = shell("verify", str(recommended.path), *shell.connection, "--master", "local[2]", "--json")
    assert verified.code == 0, verified.err
    assert all(bundle["as_predicted"] for bundle in verified.document["bundles"])


@pytest.mark.full
def test_below_3_0_an_approved_plan_moves_bundles_to_where_pulsar_places_them(
    start_cluster: StartCluster, tmp_path: Path
) -> None:
    cluster = with_cpu_skew(start_cluster(ClusterOptions(release="2.11.0")))
    shell = Shell(tmp_path, plain_connection(cluster))
    with running_load(cluster):
        wait_for_skew(cluster.admin)
        recommended = _recommended(cluster, shell)
        unload = recommended.step("unload")
        assert unload["destination"] is None
        digest = recommended.plan["digest"]
        assert shell("approve", str(recommended.path), "--digest", digest, "--as", "bob", *QUICK).code == 0
        applied = recommended.apply("--json")
        owner = cluster.admin.owners(CLUSTER_NAME)[f"{unload['namespace']}/{unload['bundle']}"]
        assert (applied.code, owner == unload["source"]) in ((0, False), (5, True)), applied.err
