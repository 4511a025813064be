"""`run` on the recorded capture, through the shell and real Spark: what `make demo` does."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from contextlib import redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from published import faults
from pulsar_advisor.cli import exit_code

RECORDED = Path(__file__).parent.parent / "data" / "recorded" / "modular-4.0.8.tar"

pytestmark = pytest.mark.spark


@dataclass(frozen=True)
class Ran:
    root: Path
    snapshot: str
    advice: dict[str, Any]
    report: Path
    err: str

    @property
    def plans(self) -> Path:
        return self.root / "plans" / "cluster=demo" / f"snapshot={self.snapshot}"


def call(*words: str) -> subprocess.CompletedProcess[str]:
    command = [str(Path(sys.executable).parent / "pulsar-advisor"), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def ask(*words: str) -> tuple[int, str]:
    """Exit code and standard output of a verb that needs no Spark, in this process: a new one imports for seconds."""
    with redirect_stdout(io.StringIO()) as said:
        code = exit_code(words)
    return code, said.getvalue()


def run(root: Path, *words: str) -> Ran:
    place = ("--root", str(root), "--cluster", "demo", "--master", "local[2]")
    ended = call("run", *place, "--from-archive", str(RECORDED), "--json", *words)
    assert ended.returncode == 0, ended.stderr
    said = json.loads(ended.stdout)
    return Ran(root, said["snapshot"], said["advice"], Path(said["report"]), ended.stderr)


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    return run(tmp_path_factory.mktemp("first"))


def test_the_advice_has_unloads_that_can_be_carried_out_and_no_split(first: Ran) -> None:
    plan = json.loads((first.plans / first.advice["plan"]).read_bytes())
    assert {step["action"] for step in plan["steps"]} == {"unload"}
    assert all(step["executable"] for step in plan["steps"])
    assert plan["predicted"]["after"]["maximum_ratio"] < plan["predicted"]["before"]["maximum_ratio"]


def test_every_shedder_with_every_placement_has_a_row_and_no_error_and_so_have_the_splits(first: Ran) -> None:
    from pulsar_advisor.placement.registry import PLACEMENTS
    from pulsar_advisor.shedding.registry import SHEDDERS

    document = json.loads((first.plans / "recommendation.json").read_bytes())
    rows = {(row["shedder"], row["placement"]): row["error"] for row in document["combinations"]}
    every = {(shedder.name, placement.name): None for shedder in SHEDDERS for placement in PLACEMENTS}
    assert rows == {**every, ("BundleSplitterTask", ""): None}


def test_the_report_needs_no_network(first: Ran) -> None:
    page = first.report.read_text()
    assert first.advice["digest"] in page
    assert "https://" not in page


def test_the_options_end_with_doing_nothing_and_begin_with_the_advice(first: Ran) -> None:
    document = json.loads((first.plans / "recommendation.json").read_bytes())
    options = document["options"]
    assert options[0]["digest"] == first.advice["digest"]
    assert options[-1]["kind"] == "nothing"
    assert document["noise_floor"]["origin"] == "default"
    assert [option["kind"] for option in options] == ["move", "split", "nothing"]  # own balancing is dominated
    assert document["lowest_maximum_ratio"] <= options[0]["maximum_ratio"] + 1e-6  # percentages are binary32


def test_a_balancer_that_is_switched_off_does_nothing_in_any_sentence(first: Ran) -> None:
    document = json.loads((first.plans / "recommendation.json").read_bytes())
    assert document["foresight"]["switched_off_by"] == ["loadBalancerSheddingEnabled"]
    page = first.report.read_text()
    assert "Pulsar itself sheds no load: loadBalancerSheddingEnabled=false" in page
    assert "Wait: Pulsar" not in page
    assert "Options" in first.report.read_text()


def test_explain_says_why_the_busiest_broker_gives_up_a_bundle_and_what_would_prevent_it(first: Ran) -> None:
    place = ("--root", str(first.root), "--cluster", "demo")
    code, said = ask("explain", *place, "--broker", "127.0.0.1:23863", "--json")
    assert code == 0
    found = json.loads(said)
    assert (found["schema"], found["acts"]) == ("pulsar-advisor/explanation/1", True)
    [answer] = found["chain"][0]["answers"]
    assert (answer["code"], answer["relation"]) == ("above_mean", ">=")
    assert answer["left"] > answer["right"]
    change = found["flips"][0]["change"]
    what_if = ("--set", f"{change['key']}={change['after']}")
    _, again = ask("explain", *place, "--broker", "127.0.0.1:23863", "--json", *what_if)
    assert not json.loads(again)["acts"]
    assert ask("explain", *place, "--broker", "127.0.0.1:1") == (2, "")


def test_lint_says_what_the_cluster_would_do_with_a_change(first: Ran) -> None:
    code, said = ask("lint", "--root", str(first.root), "--cluster", "demo", "--json")
    assert code == 0
    effects = [finding["effect"] for finding in json.loads(said) if finding["change"]]
    assert effects and all(effect["score"]["ended"] in ("settled", "unfinished", "repeats") for effect in effects)


def test_every_document_keeps_to_its_published_schema(first: Ran) -> None:
    place = ("--root", str(first.root), "--cluster", "demo", "--json")
    files = [path for path in first.root.rglob("*.json") if path.name != "lease.json"]
    verbs = ("explain", "scale", "restart-order", "report", "snapshots show", "snapshots prune --keep-count 1")
    documents = [json.loads(path.read_bytes()) for path in files]
    documents += [json.loads(ask(*verb.split(), *place)[1]) for verb in verbs]
    assert len({document["schema"] for document in documents}) >= 11
    assert [fault for document in documents for fault in faults(document)] == []


def test_each_stage_says_how_long_it_took(first: Ran) -> None:
    for stage in ("capture", "start of Spark", "normalize", "validate", "recommend", "report"):
        assert f"\n{stage}: " in f"\n{first.err}"


@pytest.mark.full
def test_the_same_snapshot_gives_the_same_plans_on_another_root(first: Ran, tmp_path: Path) -> None:
    second = run(tmp_path, "--as", "somebody else")
    assert sorted(path.name for path in second.plans.glob("*--*")) == sorted(
        path.name for path in first.plans.glob("*--*")
    )


@pytest.mark.full
def test_what_if_settings_change_the_plan_and_say_so(first: Ran) -> None:
    calm = "loadBalancerNamespaceBundleMaxMsgRate=1000000"
    ended = call(
        "recommend", "--root", str(first.root), "--cluster", "demo", "--master", "local[2]",
        "--shedder", "ThresholdShedder", "--placement", "LeastLongTermMessageRate", "--set", calm, "--json",
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    [row] = json.loads(ended.stdout)["combinations"]
    plan = json.loads((first.plans / row["plan"]).read_bytes())
    assert row["splits"] == 0
    assert plan["settings"]["loadBalancerNamespaceBundleMaxMsgRate"] == {"value": "1000000", "origin": "what-if"}


@pytest.mark.full
def test_without_validation_nothing_is_recommended(tmp_path: Path) -> None:
    place = ("--root", str(tmp_path), "--cluster", "demo")
    assert call("snapshots", "import", str(RECORDED), *place).returncode == 0
    assert call("normalize", *place, "--master", "local[2]").returncode == 0
    ended = call("recommend", *place, "--master", "local[2]")
    assert ended.returncode == 3
    assert "was never validated: run `validate` first" in ended.stderr
