"""A plan carried out by its script: the calls of `apply`, a check around each, and an end at the first surprise."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from integration.served_cluster import RealTime, served
from published import faults
from pulsar_advisor.execution.by_hand import Form, exported
from pulsar_advisor.execution.cluster.cluster_port import Split, Unload
from pulsar_advisor.model.errors import Refused
from pulsar_advisor.model.plans.plan import Identity, Plan, Step
from unit.execution.doubles import LOWER, NAMESPACE, UPPER, FakeCluster, make_plan, split_step, unload_step

ADMIN = Path(__file__).with_name("pulsar_admin.py")
TOKEN = "eyJ-a-super-users-token"
FORMS = ["curl", "pulsar-admin"]
AT_ONCE = {"PAUSE_S": "0", "HOLD_S": "0", "WAIT_S": "2", "MAX_AGE_S": str(10**9)}


@dataclass
class Scene:
    """A cluster behind sockets, whose first broker has both bundles, and a folder for the operator."""

    cluster: FakeCluster
    brokers: list[str]
    folder: Path

    def plan(self, *steps: Step, **changes: object) -> Plan:
        identity = Identity(cluster_name="live", broker_ids=tuple(self.brokers))
        return make_plan(steps, identity=identity, **changes)

    def unload(self, number: int = 1, bundle: str = LOWER, to: int | None = 1, **changes: object) -> Step:
        return unload_step(number, bundle, self.brokers[0], None if to is None else self.brokers[to], **changes)

    def split(self, number: int = 2, **changes: object) -> Step:
        step = split_step(number, **changes)
        expect = step.expect.model_copy(update={"owner": self.brokers[0]})
        return step.model_copy(update={"source": self.brokers[0], "expect": expect})

    def run(self, plan: Plan, form: Form, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run the script, as an operator would who has the tool on the path and a token in a file."""
        script = self.folder / "plan.sh"
        script.write_text(exported(plan, form))
        tool = self.folder / "bin" / "pulsar-admin"
        tool.parent.mkdir(exist_ok=True)
        tool.write_text(f'#!/bin/sh\nexec {sys.executable} {ADMIN} "$@"\n')
        tool.chmod(0o755)
        (self.folder / "token").write_text(TOKEN + "\n")
        variables = {
            "PATH": f"{tool.parent}:{os.environ['PATH']}",
            "PULSAR_ADMIN_URL": f"http://{self.brokers[2]}",
            "PULSAR_TOKEN_FILE": str(self.folder / "token"),
            "NO_PROXY": "*",
            **AT_ONCE,
            **environment,
        }
        return subprocess.run(
            ["bash", str(script), *words], env=variables, cwd=self.folder, capture_output=True, text=True, check=False
        )


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    cluster = FakeCluster(RealTime())
    with served(cluster, 3) as brokers:
        cluster.owners = dict.fromkeys(cluster.owners, brokers[0])
        yield Scene(cluster, brokers, tmp_path)


@pytest.mark.parametrize("form", FORMS)
def test_a_script_moves_what_the_plan_moves_and_splits_only_if_asked(scene: Scene, form: Form) -> None:
    plan = scene.plan(scene.unload(), scene.split(at=("0xbfffffff", "0xcfffffff")))
    done = scene.run(plan, form)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "done, without the splits"), done.stderr
    assert scene.cluster.writes == [Unload(NAMESPACE, LOWER, scene.brokers[1])]
    done = scene.run(plan, form, "--splits")
    assert (done.returncode, done.stderr) == (0, "")
    assert f"step-001: {NAMESPACE}/{LOWER} is on {scene.brokers[1]} already" in done.stdout
    assert scene.cluster.writes[1:] == [Split(NAMESPACE, UPPER, (0xBFFFFFFF, 0xCFFFFFFF))]
    again = scene.run(plan, form, "--splits")
    assert (again.returncode, len(scene.cluster.writes)) == (0, 2)


@pytest.mark.parametrize("form", FORMS)
def test_a_split_is_done_wherever_its_children_are(scene: Scene, form: Form) -> None:
    split = scene.split(1)
    first, second = split.children
    plan = scene.plan(
        split, scene.unload(2, first, 1, after=(split.id,)), scene.unload(3, second, 2, after=(split.id,))
    )
    assert scene.run(plan, form, "--splits").returncode == 0
    written = list(scene.cluster.writes)
    again = scene.run(plan, form, "--splits")
    assert (again.returncode, again.stderr, scene.cluster.writes) == (0, "", written)
    assert f"step-001: {NAMESPACE}/{UPPER} is split already" in again.stdout


@pytest.mark.parametrize("form", FORMS)
def test_a_bundle_to_split_that_is_elsewhere_gets_no_call(scene: Scene, form: Form) -> None:
    scene.cluster.owners[f"{NAMESPACE}/{UPPER}"] = scene.brokers[1]
    done = scene.run(scene.plan(scene.split(1)), form, "--splits")
    assert (done.returncode, scene.cluster.writes) == (1, [])
    assert f"stopped: {NAMESPACE}/{UPPER} is not on {scene.brokers[0]} any more, " in done.stderr


@pytest.mark.parametrize("form", FORMS)
def test_only_the_steps_that_are_named_are_sent(scene: Scene, form: Form) -> None:
    plan = scene.plan(scene.unload(1), scene.unload(2, UPPER, 2))
    assert scene.run(plan, form, "step-002").returncode == 0
    assert scene.cluster.writes == [Unload(NAMESPACE, UPPER, scene.brokers[2])]
    done = scene.run(plan, form, "step-003")
    assert (done.returncode, done.stderr) == (
        1,
        "stopped: there is no step step-003; the steps are: step-001 step-002 \n",
    )


@pytest.mark.parametrize("form", FORMS)
def test_a_bundle_that_is_elsewhere_gets_no_call(scene: Scene, form: Form) -> None:
    scene.cluster.owners[f"{NAMESPACE}/{LOWER}"] = scene.brokers[2]
    done = scene.run(scene.plan(scene.unload(1), scene.unload(2, UPPER)), form)
    assert done.returncode == 1
    assert f"stopped: {NAMESPACE}/{LOWER} is not on {scene.brokers[0]} any more, " in done.stderr
    assert scene.cluster.writes == []


@pytest.mark.parametrize("form", FORMS)
def test_a_bundle_that_arrives_elsewhere_ends_the_script(scene: Scene, form: Form) -> None:
    scene.cluster.lands_on = lambda _unload: scene.brokers[2]
    done = scene.run(scene.plan(scene.unload(1), scene.unload(2, UPPER)), form)
    assert done.returncode == 1
    assert f"is on {scene.brokers[2]}, not on {scene.brokers[1]}: the Modular load manager" in done.stderr
    assert len(scene.cluster.writes) == 1


@pytest.mark.parametrize("form", FORMS)
def test_a_bundle_without_clients_ends_the_script(scene: Scene, form: Form) -> None:
    scene.cluster.clients_reconnect = False
    done = scene.run(scene.plan(scene.unload()), form)
    assert f"no broker owns {NAMESPACE}/{LOWER} after 2 s" in done.stderr


@pytest.mark.parametrize("form", FORMS)
def test_without_a_destination_any_broker_will_do(scene: Scene, form: Form) -> None:
    done = scene.run(scene.plan(scene.unload(to=None)), form)
    assert done.returncode == 0, done.stderr
    assert scene.cluster.writes == [Unload(NAMESPACE, LOWER, None)]


@pytest.mark.parametrize(("to", "can_go_on"), [(1, True), (None, False)])
def test_it_says_whether_it_can_be_run_again(scene: Scene, to: int | None, can_go_on: bool) -> None:
    text = exported(scene.plan(scene.unload(to=to)), "curl")
    assert ("so it can be run again" in text, "name the steps that are left" in text) == (can_go_on, not can_go_on)


@pytest.mark.parametrize("limit", ["PAUSE_S", "HOLD_S", "WAIT_S", "MAX_AGE_S"])
@pytest.mark.parametrize("value", ["2m", "08", "1.5", "-1"])
def test_a_limit_that_is_no_whole_number_ends_it_before_a_call(scene: Scene, limit: str, value: str) -> None:
    done = scene.run(scene.plan(scene.unload()), "curl", **{limit: value})
    assert (done.returncode, scene.cluster.writes) == (1, [])
    assert f"{limit} is not a whole number of seconds" in done.stderr


def test_old_figures_and_an_unreachable_cluster_end_it_before_a_call(scene: Scene) -> None:
    plan = scene.plan(scene.unload())
    old = scene.run(plan, "curl", MAX_AGE_S="60")
    assert (old.returncode, "more than MAX_AGE_S=60: make a new plan, or raise it" in old.stderr) == (1, True)
    alone = scene.run(plan, "curl", PULSAR_ADMIN_URL="http://127.0.0.1:1")
    assert (alone.returncode, "can't read which bundles" in alone.stderr) == (1, True)
    assert scene.cluster.writes == []


def test_figures_from_the_future_end_it_before_a_call_since_their_age_is_unknown(scene: Scene) -> None:
    done = scene.run(scene.plan(scene.unload(), snapshot="99991231T235959Z"), "curl")
    assert (done.returncode, scene.cluster.writes) == (1, [])
    assert "min in the future: check this machine's clock" in done.stderr


def test_the_token_is_sent_to_brokers_of_the_cluster_only(scene: Scene) -> None:
    plan = scene.plan(scene.unload())
    elsewhere = plan.model_copy(update={"identity": Identity(cluster_name="live", broker_ids=("10.0.0.1:8080",))})
    done = scene.run(elsewhere, "curl")
    assert "not followed: a redirect to http://127.0.0.1:" in done.stderr
    assert scene.cluster.writes == []


@pytest.mark.parametrize("form", [*FORMS, "json"])
def test_nothing_in_it_is_a_secret_or_of_this_machine(scene: Scene, form: Form) -> None:
    text = exported(scene.plan(scene.unload()), form)
    assert TOKEN not in text
    assert str(Path.home()) not in text


@pytest.mark.parametrize("form", FORMS)
def test_names_and_reasons_are_never_commands(scene: Scene, form: Form) -> None:
    evil = scene.unload(
        namespace="shop/$(touch owned)`touch owned`'; touch owned; '",
        reason="made\ntouch owned\r\ntouch owned\u2028touch owned",
    )
    done = scene.run(scene.plan(evil, cluster="x\ntouch owned"), form)
    assert done.returncode == 1
    assert not (scene.folder / "owned").exists()
    assert scene.cluster.writes == []


def test_a_name_of_the_cluster_is_part_of_a_path_and_no_pattern_of_curls(scene: Scene) -> None:
    scene.cluster.name = "c{a,b}[1-2]?d#e f"
    identity = Identity(cluster_name=scene.cluster.name, broker_ids=tuple(scene.brokers))
    done = scene.run(make_plan([scene.unload()], identity=identity), "curl")
    assert (done.returncode, done.stderr) == (0, "")


def test_as_json_it_is_the_calls_and_what_to_expect_of_them(scene: Scene) -> None:
    document = json.loads(exported(scene.plan(scene.unload(), scene.split()), "json"))
    (unload,), (split,) = document["unloads"], document["splits_and_after"]
    assert unload["call"] == {
        "method": "PUT",
        "path": f"/admin/v2/namespaces/{NAMESPACE}/{LOWER}/unload",
        "query": {"destinationBroker": scene.brokers[1]},
        "body": None,
    }
    assert unload["owner_before"] == {f"{NAMESPACE}/{LOWER}": scene.brokers[0]}
    assert unload["owner_after"] == {f"{NAMESPACE}/{LOWER}": scene.brokers[1]}
    assert split["call"]["body"] == [0xBFFFFFFF]
    assert split["call"]["query"] == {"unload": "false", "splitAlgorithmName": "specified_positions_divide"}
    assert set(split["owner_after"].values()) == {scene.brokers[0]}
    assert not faults(document)
    assert document["to_mind"] == ["it splits 1 bundle, which can't be undone."]


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"load_manager": "simple"}, "doesn't keep the destination"),
        ({"pulsar_version": "2.11.4"}, "doesn't keep the destination of an unload"),
    ],
)
def test_a_plan_that_apply_would_refuse_is_not_written(scene: Scene, changes: dict[str, str], says: str) -> None:
    with pytest.raises(Refused, match=says):
        exported(scene.plan(scene.unload(), **changes), "curl")


def test_a_plan_without_steps_is_not_written(scene: Scene) -> None:
    with pytest.raises(Refused, match="no step that can be carried out"):
        exported(scene.plan(scene.unload(executable=False)), "json")
