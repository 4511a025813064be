"""Plans of a snapshot that an earlier commit captured, judged by what this one computes from it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import documents
from pulsar_advisor.execution.ledger.ledger import Ledger
from pulsar_advisor.execution.ledger.opening import open_ledger
from pulsar_advisor.execution.ledger.seals import seals_of_snapshot
from pulsar_advisor.execution.undo import UNDO
from pulsar_advisor.model.errors import Refused
from pulsar_advisor.model.plans.goal import Goal
from pulsar_advisor.model.plans.plan import Plan
from pulsar_advisor.planning.proposals.limits import Limits
from pulsar_advisor.planning.requests.request import Request
from pulsar_advisor.stages.derive import why_not_computed_here
from pulsar_advisor.stages.recommend_shedder import recommend_shedder
from pulsar_advisor.stages.seal import require_as_sealed, seal, sealing
from pulsar_advisor.storage.files import write_file
from pulsar_advisor.storage.lease import held
from pulsar_advisor.storage.plans import read_plan, write_plan
from pulsar_advisor.storage.results import read_validation
from pulsar_advisor.storage.root import PLANS, RESULT, Root
from pulsar_advisor.tables.judged import resolved_request
from unit.execution.doubles import FakeTime

EARLIER = Path(__file__).parents[2] / "data" / "earlier" / "root"
SNAPSHOT = "20261122T093126Z"
DRAIN = Request(goal=Goal("drain", ("broker-3",)))


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with closing(open_ledger(f"sqlite:///{tmp_path}/ledger.sqlite", FakeTime().now_ms)) as opened:
        yield opened


@pytest.fixture
def root(tmp_path: Path, ledger: Ledger) -> Root:
    """The snapshot with its tables and its validation, as this ledger sealed them."""
    for stage in ("raw", "tables", "validation"):
        shutil.copytree(EARLIER / stage, tmp_path / "root" / stage)
    root = Root(str(tmp_path / "root"), "live")
    sealed(root, ledger, "capture", "normalize", "validate")
    return root


def sealed(root: Root, ledger: Ledger, *stages: str, snapshot: str = SNAPSHOT) -> None:
    url = f"sqlite:///{Path(root.url).parent}/ledger.sqlite"
    seal(lambda: closing(open_ledger(url, ledger.now_ms)), root.snapshot(snapshot), *stages)


def recommended(root: Root, request: Request) -> list[Plan]:
    """The plans of a request, in files; listed as `recommend` lists them, which asks Spark to compute them."""
    request = resolved_request(root.snapshot(SNAPSHOT), request)
    rows: list[dict[str, Any]] = []
    folder = root.snapshot(SNAPSHOT).folder(PLANS)
    with held(folder, SNAPSHOT, "plans are being made") as lease:
        for number, shedder in enumerate(request.shedders):
            place = {"root": root.url, "cluster": root.cluster, "snapshot": SNAPSHOT}
            task = {**place, "request": request.of(shedder).document(), "with_splits": number == 0}
            rows += json.loads(recommend_shedder(lease.nonce, json.loads(json.dumps(task))))
    listed([row["digest"] for row in rows], root)
    return [read_plan(str(folder / row["plan"])) for row in rows if row["plan"]]


def listed(digests: list[str], root: Root) -> None:
    document = documents.recommendation(*(documents.combination(digest=digest) for digest in digests))
    write_file(root.snapshot(SNAPSHOT).result_file("recommend"), document.content())


@pytest.mark.sampled(every=3)
@pytest.mark.parametrize(
    "request_of_plans",
    [
        DRAIN,
        Request(goal=Goal("balance", target_ratio=0.5), limits=Limits(max_unloads=1, exclude_brokers=("broker-1",))),
        Request(goal=Goal("split")),
        Request(seed=7, unload_children=True),
        Request(view="published", history=0),
        Request(
            shedder="ThresholdShedder",
            what_if={
                "loadBalancerBrokerThresholdShedderPercentage": "1",
                "loadBalancerNamespaceBundleMaxTopics": "2",
                "loadBalancerCPUResourceWeight": "0.5",
                "loadBalancerOverrideBrokerNicSpeedGbps": "10",
                "loadBalancerAvgShedderHitCountLowThreshold": "2",
            },
        ),
    ],
    ids=["drain", "balance", "split", "all", "published", "what-if"],
)
def test_every_plan_can_be_computed_again_from_what_it_says(
    root: Root, ledger: Ledger, request_of_plans: Request
) -> None:
    plans = recommended(root, request_of_plans)
    sealed(root, ledger, "recommend")
    assert plans
    assert {why_not_computed_here(root, ledger, plan) for plan in plans} == {None}


def test_what_a_plan_remembers_is_read_again_if_it_is_as_it_was_sealed(root: Root, ledger: Ledger) -> None:
    before = "20261122T092126Z"
    for folder in Path(root.url).glob(f"**/snapshot={SNAPSHOT}"):
        shutil.copytree(folder, folder.with_name(f"snapshot={before}"))
    plans = recommended(root, Request(shedder="TransferShedder", placement="configured", history=1))
    sealed(root, ledger, "recommend")
    assert {tuple(plan.memory["snapshots"]) for plan in plans} == {(before,)}
    why = {why_not_computed_here(root, ledger, plan) for plan in plans}
    assert why == {f"this ledger has no seal of what `capture` wrote about snapshot {before}"}
    sealed(root, ledger, "capture", "normalize", "validate", snapshot=before)
    assert {why_not_computed_here(root, ledger, plan) for plan in plans} == {None}
    (root.snapshot(before).folder("tables/brokers") / "put-in.parquet").write_bytes(b"")
    with pytest.raises(Refused, match=f"what `normalize` wrote about snapshot {before} was changed since"):
        why_not_computed_here(root, ledger, plans[0])


def changed(plan: Plan) -> Plan:
    step = plan.steps[0].model_copy(update={"confidence": "high", "doubts": ()})
    after = plan.predicted.after.model_copy(update={"maximum_ratio": 0.01})
    predicted = plan.predicted.model_copy(update={"after": after})
    return plan.model_copy(update={"steps": (step, *plan.steps[1:]), "predicted": predicted})


def test_a_plan_that_no_recommendation_lists_is_refused(root: Root, ledger: Ledger) -> None:
    [plan] = recommended(root, DRAIN)
    sealed(root, ledger, "recommend")
    with pytest.raises(Refused, match=f"no recommendation of snapshot {SNAPSHOT} lists sha256:"):
        why_not_computed_here(root, ledger, changed(plan))


def test_a_plan_put_into_a_recommendation_before_it_was_sealed_is_refused_with_what_differs(
    root: Root, ledger: Ledger
) -> None:
    [plan] = recommended(root, DRAIN)
    written = write_plan(root, changed(plan))
    listed([written.digest], root)
    sealed(root, ledger, "recommend")
    with pytest.raises(
        Refused, match=r"predicted\.after\.maximum_ratio is 0\.01, but .* in the computed plan; steps\[0\]"
    ):
        why_not_computed_here(root, ledger, changed(plan))


def test_a_later_recommendation_of_the_snapshot_takes_no_plan_back(root: Root, ledger: Ledger) -> None:
    [plan] = recommended(root, DRAIN)
    sealed(root, ledger, "recommend")
    recommended(root, Request(goal=Goal("drain", ("broker-1",))))
    sealed(root, ledger, "recommend")
    assert why_not_computed_here(root, ledger, plan) is None


@pytest.mark.parametrize(
    ("stage", "file"),
    [
        ("validate", f"validation/cluster=live/snapshot={SNAPSHOT}/{RESULT}"),
        ("capture", f"raw/cluster=live/snapshot={SNAPSHOT}/manifest.json"),
        ("normalize", f"tables/bundles/cluster=live/snapshot={SNAPSHOT}/put-in.parquet"),
    ],
)
def test_files_that_are_not_as_they_were_sealed_are_refused(root: Root, ledger: Ledger, stage: str, file: str) -> None:
    [plan] = recommended(root, DRAIN)
    sealed(root, ledger, "recommend")
    with (Path(root.url) / file).open("ab") as content:
        content.write(b" ")
    with pytest.raises(Refused, match=f"what `{stage}` wrote about snapshot {SNAPSHOT} was changed since"):
        why_not_computed_here(root, ledger, plan)


def test_a_changed_recommendation_is_not_the_sealed_one(root: Root, ledger: Ledger) -> None:
    recommended(root, DRAIN)
    sealed(root, ledger, "recommend")
    listed(["sha256:other"], root)
    with pytest.raises(Refused, match="what `recommend` wrote"):
        require_as_sealed(ledger, root.snapshot(SNAPSHOT), "recommend")


def test_without_a_seal_a_person_has_to_judge_the_plan(root: Root, ledger: Ledger) -> None:
    [plan] = recommended(root, DRAIN)
    why = f"this ledger has no seal of a recommendation of snapshot {SNAPSHOT}"
    assert why_not_computed_here(root, ledger, plan) == why


def test_a_person_has_to_judge_a_plan_of_a_pruned_snapshot(root: Root, ledger: Ledger) -> None:
    [plan] = recommended(root, DRAIN)
    sealed(root, ledger, "recommend")
    shutil.rmtree(Path(root.url) / "raw")
    assert why_not_computed_here(root, ledger, plan) == (
        f"what `capture` wrote about snapshot {SNAPSHOT} no longer exists"
    )


def test_a_person_has_to_judge_a_plan_of_which_nothing_else_was_ever_sealed_nor_is_there(
    root: Root, ledger: Ledger
) -> None:
    [plan] = recommended(root, DRAIN)
    url = f"sqlite:///{Path(root.url).parent}/other.sqlite"
    seal(lambda: closing(open_ledger(url)), root.snapshot(SNAPSHOT), "recommend")
    for stage in ("raw", "tables", "validation"):
        shutil.rmtree(Path(root.url) / stage)
    with closing(open_ledger(url)) as other:
        assert str(why_not_computed_here(root, other, plan)).endswith(
            "manifest.json does not exist: run `capture` first"
        )


def test_a_person_has_to_judge_a_plan_of_another_release(
    root: Root, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    [plan] = recommended(root, DRAIN)
    monkeypatch.setattr("pulsar_advisor.execution.ledger.seals.RELEASE", "0.0.1")
    sealed(root, ledger, "recommend")
    assert str(why_not_computed_here(root, ledger, plan)).startswith("release 0.0.1 computed it, and this is ")


def validated_anew(root: Root, ledger: Ledger, **changes: object) -> None:
    """Somebody validated the snapshot again, with another result."""
    result = read_validation(root.snapshot(SNAPSHOT)).model_copy(update=changes)
    write_file(root.snapshot(SNAPSHOT).result_file("validate"), result.content())
    sealed(root, ledger, "validate")


def test_a_person_has_to_judge_a_plan_of_a_snapshot_that_was_validated_anew(root: Root, ledger: Ledger) -> None:
    [plan] = recommended(root, DRAIN)
    sealed(root, ledger, "recommend")
    validated_anew(root, ledger, results=())
    assert why_not_computed_here(root, ledger, plan) == (
        f"its snapshot {SNAPSHOT} was captured or validated anew since"
    )


def test_a_plan_of_a_snapshot_that_must_not_be_used_is_refused(root: Root, ledger: Ledger) -> None:
    [plan] = recommended(root, DRAIN)
    sealed(root, ledger, "recommend")
    validated_anew(root, ledger, success=False)
    with pytest.raises(Refused, match=f"can't have been computed from its snapshot: snapshot {SNAPSHOT} did not pass"):
        why_not_computed_here(root, ledger, plan)


def test_one_with_limits_that_are_not_known_here_has_to_be_judged_by_a_person(root: Root, ledger: Ledger) -> None:
    [plan] = recommended(root, DRAIN)
    other = plan.model_copy(update={"limits": {**plan.limits, "max_sorrow": 1}})
    listed([write_plan(root, other).digest], root)
    sealed(root, ledger, "recommend")
    assert why_not_computed_here(root, ledger, other) == (
        "it can't be computed again: its limits max_sorrow are not known here"
    )


def test_a_result_that_was_there_before_its_stage_is_not_sealed(root: Root, ledger: Ledger) -> None:
    other = f"sqlite:///{Path(root.url).parent}/other.sqlite"
    with sealing(lambda: closing(open_ledger(other)), root.snapshot(SNAPSHOT), "normalize", "validate"):
        pass  # both leave what they find as it is
    with closing(open_ledger(other)) as opened:
        assert seals_of_snapshot(opened, root.cluster, SNAPSHOT) == []
        assert require_as_sealed(opened, root.snapshot(SNAPSHOT), "normalize") == (
            f"this ledger has no seal of what `normalize` wrote about snapshot {SNAPSHOT}"
        )


def test_a_result_that_was_not_changed_is_sealed_once(root: Root, ledger: Ledger) -> None:
    before = ledger.head()
    sealed(root, ledger, "capture", "normalize", "validate")
    assert ledger.head() == before


def test_a_ledger_that_can_not_be_opened_does_not_end_the_stage(root: Root, caplog: pytest.LogCaptureFixture) -> None:
    seal(lambda: closing(open_ledger("sqlite:////proc/none/ledger.sqlite")), root.snapshot(SNAPSHOT), "validate")
    assert "no policy can approve its plans: can't open or create ledger" in caplog.text


@pytest.mark.parametrize(
    "says",
    [{"shedder": UNDO, "placement": UNDO}, {"goal": None, "memory": {"undoes": "sha256:" + 64 * "0"}}],
    ids=["as what made it", "as what it undoes"],
)
def test_a_plan_is_no_undo_because_it_says_so(root: Root, ledger: Ledger, says: dict[str, object]) -> None:
    [plan] = recommended(root, DRAIN)
    sealed(root, ledger, "recommend")
    with pytest.raises(Refused, match="is no undo of"):
        why_not_computed_here(root, ledger, plan.model_copy(update=says))
