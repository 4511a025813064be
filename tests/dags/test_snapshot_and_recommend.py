"""Whole runs of the two DAGs that only read: what they hand on, and when they stop."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import get_args

import pytest
from airflow.sdk.exceptions import AirflowFailException

import documents
from dags.conftest import RunDag, Stages, announced
from pulsar_advisor.documents.upgrade import UpgradePreview
from pulsar_advisor.model.plans.sealed import digest_of
from pulsar_advisor.recommendation.upgrade import UpgradeRequest
from pulsar_advisor.storage.files import write_file
from pulsar_advisor.storage.plans import advised_plan
from pulsar_advisor_airflow.notifiers import BalancerWebhook
from pulsar_advisor_airflow.tasks import new_advice
from web_server import HTTPServer

pytestmark = pytest.mark.airflow


def test_a_snapshot_goes_from_capture_to_the_asset(stages: Stages, run_dag: RunDag) -> None:
    state, _ = run_dag("pulsar_snapshot")
    assert state == "success"
    assert stages.calls == ["capture", "normalize", "validate"]
    [snapshot] = stages.root.snapshots()
    assert announced() == [{"root": stages.root.url, "cluster": "demo", "snapshot": snapshot}]


def test_one_task_makes_the_tables_and_judges_them_where_the_configuration_says_so(
    stages: Stages, run_dag: RunDag, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__PULSAR_ADVISOR__ONE_SPARK_TASK", "true")
    state, tasks = run_dag("pulsar_snapshot")
    assert state == "success"
    assert tasks.keys() == {"capture", "snapshot", "require_trusted_snapshot"}
    assert stages.calls == ["capture", "snapshot"]


def test_a_snapshot_that_must_not_be_used_is_not_announced(stages: Stages, run_dag: RunDag) -> None:
    stages.fit_for_use = False
    state, tasks = run_dag("pulsar_snapshot")
    assert (state, tasks["validate"], tasks["require_trusted_snapshot"]) == ("failed", "success", "failed")


def test_a_call_about_a_task_that_is_given_no_cluster_names_that_of_its_dag(
    stages: Stages, run_dag: RunDag, registered: Callable[..., None], calls: list[str]
) -> None:
    registered("other", "called")
    assert run_dag("pulsar_recommend__called")[0] == "failed"
    [call] = calls
    assert call.startswith("task.failed called pulsar_recommend__called: snapshot failed: name a snapshot")


@pytest.mark.parametrize("fit_for_use", [True, False])
def test_checks_are_measured_also_of_a_snapshot_that_must_not_be_used_but_not_its_age(
    stages: Stages, monkeypatch: pytest.MonkeyPatch, *, fit_for_use: bool
) -> None:
    """The age is of the newest snapshot with advice, as `pulsar_watch` finds it: this one has none yet."""
    from pulsar_advisor_airflow.tasks import require_trusted_snapshot, snapshots

    measured: dict[str, float] = {}
    monkeypatch.setattr(
        "airflow.sdk.observability.stats.gauge", lambda name, value, **_: measured.update({name: value})
    )
    monkeypatch.setattr(
        snapshots, "get_current_context", lambda: {"outlet_events": {}, "task": SimpleNamespace(outlets=())}
    )
    stages.fit_for_use = fit_for_use
    snapshot = stages.validated()
    with nullcontext() if fit_for_use else pytest.raises(AirflowFailException):
        require_trusted_snapshot("demo", snapshot)
    assert measured == {"pulsar_advisor.failed_checks.demo": 0 if fit_for_use else 1}


def test_a_recommendation_for_a_named_snapshot_ends_with_a_report(stages: Stages, run_dag: RunDag) -> None:
    run_dag("pulsar_snapshot")
    stages.calls.clear()
    [snapshot] = stages.root.snapshots()
    state, _ = run_dag("pulsar_recommend", {"snapshot": snapshot})
    assert state == "success"
    assert stages.calls == [
        "recommend --shedder=all --placement=all --splits --no-unload-children --view=judged",
        "report",
    ]
    advised = {"snapshot": snapshot, "digest": digest_of(stages.plan)}
    assert announced() == [{"root": stages.root.url, "cluster": "demo", **advised}]


@pytest.mark.slow
def test_a_recommendation_for_an_earlier_snapshot_sets_no_metric(
    stages: Stages, run_dag: RunDag, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[str] = []
    monkeypatch.setattr("airflow.sdk.observability.stats.gauge", lambda name, *_, **__: measured.append(name))
    earlier, newest = stages.snapshot(), stages.snapshot()
    for snapshot in (newest, earlier):
        stages._validate(snapshot)
        run_dag("pulsar_recommend", {"snapshot": snapshot})
    ours = [name for name in measured if name.startswith("pulsar_advisor")]
    once_each = ("failed_checks", "imbalance_ratio")
    assert ours == [f"pulsar_advisor.{figure}.demo" for figure in once_each]


def test_of_several_snapshots_the_newest_is_recommended_on_whatever_events_users_make(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from pulsar_advisor_airflow import tasks
    from pulsar_advisor_airflow.tasks import snapshots

    extras = ({"snapshot": "20261121T084500Z"}, {"snapshot": "20261121T083000Z"}, {"from_rest_api": True})
    events = {"asset": [SimpleNamespace(extra=extra) for extra in extras]}
    monkeypatch.setattr(snapshots, "get_current_context", lambda: {"triggering_asset_events": events})
    assert tasks.snapshot_to_recommend_on() == "20261121T084500Z"


@pytest.mark.slow
def test_a_release_in_the_form_is_previewed_before_the_report(
    stages: Stages, run_dag: RunDag, monkeypatch: pytest.MonkeyPatch
) -> None:
    from unit.recommendation.test_upgrade import preview

    def previewed(_snapshot: object, request: UpgradeRequest) -> UpgradePreview:
        stages.calls.append(f"upgrade to {request.to}")
        return preview()

    monkeypatch.setattr("pulsar_advisor.stages.upgrade.run", previewed)
    snapshot = stages.validated()
    state, _ = run_dag("pulsar_recommend", {"snapshot": snapshot, "upgrade_to": "5.0.1"})
    assert (state, stages.calls[-2:]) == ("success", ["upgrade to 5.0.1", "report"])


@pytest.fixture
def recommended(
    stages: Stages, run_dag: RunDag, monkeypatch: pytest.MonkeyPatch, noted: list[str]
) -> Callable[[], str]:
    """Recommend on a new snapshot; gives the state of the task that says what is new, which a notifier hears."""
    monkeypatch.setenv("AIRFLOW__PULSAR_ADVISOR__ADVICE_NOTIFIERS", "dags.notifiers.noting")

    def run() -> str:
        snapshot = stages.validated()
        state, tasks = run_dag("pulsar_recommend", {"snapshot": snapshot})
        assert state == "success"
        return tasks["new_advice"]

    return run


def test_notifiers_hear_of_advice_only_when_it_changes(
    stages: Stages, recommended: Callable[[], str], noted: list[str]
) -> None:
    assert [recommended(), recommended()] == ["success", "skipped"]
    stages.nothing_to_do = True
    assert [recommended(), recommended()] == ["success", "skipped"]
    assert noted == ["demo: Move one bundle.", "demo: Nothing is worth doing."]


def test_the_only_plan_of_a_recommendation_is_no_advice_unless_it_is_advised(
    stages: Stages, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = stages.snapshot()
    stages._recommend(snapshot)
    found = advised_plan(stages.root.snapshot(snapshot))[0]
    assert found is not None
    document = documents.recommendation(documents.combination(plan=found.file, digest=found.digest))
    write_file(stages.root.snapshot(snapshot).folder("plans") / "recommendation.json", document.content())
    context = {"asset_state_store": {}, "ti": SimpleNamespace(xcom_push=lambda *_: None)}
    monkeypatch.setattr("pulsar_advisor_airflow.tasks.advice.get_current_context", lambda: context)
    said = new_advice("demo", snapshot)
    assert (said["sentence"], said["digest"]) == ("Nothing is worth doing.", "")


def test_advice_on_an_earlier_snapshot_is_told_to_no_one(
    stages: Stages, run_dag: RunDag, recommended: Callable[[], str], noted: list[str]
) -> None:
    earlier = stages.validated()
    stages.nothing_to_do = True
    recommended()
    stages.nothing_to_do = False
    _, tasks = run_dag("pulsar_recommend", {"snapshot": earlier})
    assert (tasks["new_advice"], noted) == ("skipped", ["demo: Nothing is worth doing."])


@pytest.mark.slow
def test_what_a_person_had_recommended_meanwhile_is_not_what_was_told(
    stages: Stages, recommended: Callable[[], str]
) -> None:
    def recommended_by_another() -> None:
        stages._recommend(stages.snapshot())

    stages.nothing_to_do = True
    recommended()
    stages.nothing_to_do = False
    recommended_by_another()
    assert recommended() == "success"
    stages.nothing_to_do = True
    recommended_by_another()
    stages.nothing_to_do = False
    assert recommended() == "skipped"


@pytest.mark.slow
def test_advice_is_told_again_until_it_has_reached_somebody(
    recommended: Callable[[], str], noted: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for configured, state in (
        ("dags.notifiers.failing", "success"),
        ("dags.notifiers.failing, dags.notifiers.noting", "success"),
        ("dags.notifiers.failing, dags.notifiers.noting", "skipped"),
    ):
        monkeypatch.setenv("AIRFLOW__PULSAR_ADVISOR__ADVICE_NOTIFIERS", configured)
        assert recommended() == state
    assert noted == ["demo: Move one bundle."]


def test_a_webhook_hears_of_it_too_signed_and_without_a_secret(
    stages: Stages, run_dag: RunDag, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    snapshot = stages.validated()
    with HTTPServer(host="127.0.0.1", port=0) as receiver:
        receiver.expect_request("/the-password").respond_with_data("", status=204)
        monkeypatch.setenv("OUR_HOOK", receiver.url_for("/the-password"))
        monkeypatch.setenv("OUR_KEY", key)
        monkeypatch.setenv("AIRFLOW__PULSAR_ADVISOR__WEBHOOK", "env:OUR_HOOK")
        monkeypatch.setenv("AIRFLOW__PULSAR_ADVISOR__WEBHOOK_KEY", "env:OUR_KEY")
        state, _ = run_dag("pulsar_recommend", {"snapshot": snapshot})
        ((request, _),) = receiver.log
    message = json.loads(request.get_data())
    assert (state, message["type"]) == ("success", "advice.changed")
    assert message["data"].keys() == {"cluster", "snapshot", "sentence", "digest", "report"}
    assert message["data"]["sentence"] == "Move one bundle."
    assert request.headers["webhook-signature"].startswith("v1,")
    assert not [secret for secret in (key, "the-password") if secret.encode() in request.get_data()]


def test_a_webhook_that_fails_fails_no_recommendation(
    stages: Stages, run_dag: RunDag, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__PULSAR_ADVISOR__WEBHOOK", "https://169.254.169.254/latest/meta-data")
    snapshot = stages.validated()
    assert run_dag("pulsar_recommend", {"snapshot": snapshot})[0] == "success"


def test_a_form_left_alone_asks_for_what_the_command_line_asks_for() -> None:
    from pulsar_advisor.cli.options import RequestOptions
    from pulsar_advisor.model.configuration.kinds import WantedView
    from pulsar_advisor_airflow.forms import ALL, strategy_params

    options, form = RequestOptions(), strategy_params(ALL, ALL)
    shared = {name: param.resolve() for name, param in form.items() if name != "what_if"}
    assert shared == {name: getattr(options, name) for name in shared}
    assert tuple(form["what_if"].resolve()) == options.set
    assert tuple(form["view"].schema["enum"]) == get_args(WantedView)


def test_started_by_hand_without_a_snapshot_it_fails_and_computes_nothing(stages: Stages, run_dag: RunDag) -> None:
    state, tasks = run_dag("pulsar_recommend")
    assert (state, tasks["snapshot"], stages.calls) == ("failed", "failed", [])


def test_a_webhook_hears_whose_balancer_is_still_off(monkeypatch: pytest.MonkeyPatch) -> None:
    with HTTPServer(host="127.0.0.1", port=0) as receiver:
        receiver.expect_request("/hook").respond_with_data("", status=204)
        monkeypatch.setenv("OUR_HOOK", receiver.url_for("/hook"))
        monkeypatch.setenv("AIRFLOW__PULSAR_ADVISOR__WEBHOOK", "env:OUR_HOOK")
        failed = SimpleNamespace(op_kwargs={"cluster": "demo"})
        BalancerWebhook().notify({"task": failed, "exception": AirflowFailException("b-1:8080 did not answer")})
        ((request, _),) = receiver.log
    message = json.loads(request.get_data())
    assert (message["type"], message["data"]) == (
        "balancer.still_off",
        {"cluster": "demo", "sentence": "b-1:8080 did not answer"},
    )
