"""The package as Airflow sees it: a valid provider, a connection type with its form, a section of the configuration."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import airflow
import jsonschema
import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException, AirflowSkipException

import documents
from pulsar_advisor.admin.oxia import OxiaConnection
from pulsar_advisor.documents.apply_result import AppliedStep
from pulsar_advisor.documents.call import Call
from pulsar_advisor.documents.document import as_json
from pulsar_advisor.documents.runs import StepState
from pulsar_advisor.execution.run.end_of_run import AttemptResult
from pulsar_advisor.execution.run.parking import Parking
from pulsar_advisor.model.errors import UsageError
from pulsar_advisor.model.plans.goal import ROLL
from pulsar_advisor.storage.files import write_file
from pulsar_advisor.storage.root import RESULT, Root
from pulsar_advisor_airflow import tasks
from pulsar_advisor_airflow.configuration import OPTIONS, job, option, report_link
from pulsar_advisor_airflow.failures import as_airflow_errors, logged
from pulsar_advisor_airflow.hooks.pulsar_admin import ADMIN_FIELDS, OAUTH2, OAUTH2_FIELDS, PulsarAdminHook
from pulsar_advisor_airflow.hooks.pulsar_metadata_store import (
    OXIA_FIELDS,
    ZOOKEEPER_FIELDS,
    PulsarOxiaHook,
    PulsarZooKeeperHook,
)
from pulsar_advisor_airflow.ledger import head_keepers, opened_ledger
from pulsar_advisor_airflow.operators.apply import PulsarApplyOperator
from pulsar_advisor_airflow.operators.approval import PlanApprovalOperator
from pulsar_advisor_airflow.operators.roll import PulsarRollOperator
from pulsar_advisor_airflow.provider import get_provider_info
from pulsar_advisor_airflow.tasks import advised_plan, require_trusted_snapshot

AIRFLOW = Path(airflow.__path__[0])


def connect(monkeypatch: pytest.MonkeyPatch, **fields: Any) -> PulsarAdminHook:
    extra = {"admin_urls": "http://b1:8080, http://b2:8080", **fields.pop("extra", {})}
    document = {"conn_type": "pulsar_admin", "extra": extra, **fields}
    monkeypatch.setenv("AIRFLOW_CONN_PULSAR_DEFAULT", json.dumps(document))
    return PulsarAdminHook()


def test_the_provider_is_what_airflow_expects_of_one() -> None:
    jsonschema.validate(get_provider_info(), json.loads((AIRFLOW / "provider_info.schema.json").read_text()))


def test_airflow_offers_the_connection_type_with_its_fields() -> None:
    from airflow.api_fastapi.core_api.services.ui.connections import HookMetaService

    offered = {form.connection_type: form for form in HookMetaService.hook_meta_data()}
    assert offered["pulsar_admin"].hook_name == "Apache Pulsar admin"
    assert "admin_urls" in offered["pulsar_admin"].extra_fields
    assert "hosts" in offered["pulsar_zookeeper"].extra_fields
    assert "url" in offered["pulsar_oxia"].extra_fields
    ours = [form.extra_fields for name, form in offered.items() if name and name.startswith("pulsar_")]
    assert [name for fields in ours for name, field in (fields or {}).items() if "type" not in field["schema"]] == []


@pytest.mark.parametrize(
    ("connection_type", "read"),
    [
        (
            "pulsar_admin",
            {
                "admin_urls",
                "zookeeper",
                "metadata_store",
                "service_url",
                "listen",
                *ADMIN_FIELDS,
                *(f"{OAUTH2}{name}" for name in OAUTH2_FIELDS),
            },
        ),
        ("pulsar_zookeeper", {"hosts", *ZOOKEEPER_FIELDS}),
        ("pulsar_oxia", {"url", *OXIA_FIELDS}),
    ],
)
def test_a_form_has_the_fields_that_its_hook_reads(connection_type: str, read: set[str]) -> None:
    types = {one["connection-type"]: one for one in get_provider_info()["connection-types"]}
    assert types[connection_type]["conn-fields"].keys() == read


def test_each_option_has_a_default_that_the_environment_overrides(monkeypatch: pytest.MonkeyPatch) -> None:
    assert option("spark_conn_id") == OPTIONS["spark_conn_id"]["default"]
    monkeypatch.setenv("AIRFLOW__PULSAR_ADVISOR__SPARK_CONN_ID", "spark_batch")
    assert option("spark_conn_id") == "spark_batch"


def test_a_secret_that_a_command_prints_is_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__PULSAR_ADVISOR__LEDGER_CMD", "echo postgresql://db/ledger")
    assert option("ledger") == "postgresql://db/ledger"


@pytest.mark.parametrize(("name", "value"), [("root", ""), ("root", "data"), ("ledger", "sqlite:///ledger.sqlite")])
def test_a_place_that_is_another_one_for_each_process_is_refused(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(f"AIRFLOW__PULSAR_ADVISOR__{name.upper()}", value)
    with pytest.raises(UsageError, match=rf"\[pulsar_advisor\] {name} is '{value}', .*: make the path absolute"):
        option(name)


def test_a_ledger_that_is_another_one_for_each_process_is_refused_where_its_address_is_kept_elsewhere(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AIRFLOW__PULSAR_ADVISOR__LEDGER", "env:OUR_LEDGER")
    monkeypatch.setenv("OUR_LEDGER", "sqlite:///ledger.sqlite")
    with pytest.raises(UsageError, match=r"\[pulsar_advisor\] ledger is 'env:OUR_LEDGER', .*: make the path absolute"):
        opened_ledger(Root(str(tmp_path), "test"))


def test_a_folder_of_heads_that_is_another_one_for_each_process_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__PULSAR_ADVISOR__HEADS", "log, /srv/heads, memory://audit/heads, ledger/heads")
    with pytest.raises(UsageError, match=r"\[pulsar_advisor\] heads is 'ledger/heads', .*: make the path absolute"):
        head_keepers()


@pytest.mark.parametrize("stage", ["normalize", "validate", "snapshot", "recommend"])
def test_each_spark_stage_has_its_file(stage: str) -> None:
    assert Path(job(stage)).is_file()


def test_every_button_of_a_task_is_declared() -> None:
    from pulsar_advisor_airflow import links

    declared = {name.rpartition(".")[2] for name in get_provider_info()["extra-links"]}
    assert declared == {
        name for name, link in vars(links).items() if isinstance(link, type) and link.__module__ == links.__name__
    }


def test_the_link_to_a_report_keeps_the_path_airflow_is_served_under(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://tools.example/airflow/")
    assert report_link("c", "20261121T083000Z") == "/airflow/pulsar-advisor/clusters/c/reports/20261121T083000Z"


def test_a_token_is_handed_over_and_nowhere_else(monkeypatch: pytest.MonkeyPatch) -> None:
    hook = connect(
        monkeypatch,
        password="eyJ.a.b",
        extra={"zookeeper": "zk1:2181/pulsar", "service_url": "pulsar://b:1", "listen": "2m"},
    )
    before = dict(os.environ)
    options = hook.options()
    assert options.admin.admin_urls == ("http://b1:8080", "http://b2:8080")
    assert options.admin.authorization() == "Bearer eyJ.a.b"
    assert options.zookeeper is not None
    assert options.zookeeper.hosts == "zk1:2181/pulsar"
    assert (options.service_url, options.listen_s) == ("pulsar://b:1", 120)
    assert "eyJ.a.b" not in repr(options)
    assert dict(os.environ) == before
    assert "eyJ.a.b" not in {value for name, value in os.environ.items() if not name.startswith("AIRFLOW_CONN_")}


def test_a_user_and_a_password_are_basic_authentication(monkeypatch: pytest.MonkeyPatch) -> None:
    options = connect(monkeypatch, login="ann", password="secret").options()
    assert options.admin.authorization() == "Basic YW5uOnNlY3JldA=="


def test_with_an_issuer_they_are_a_clients_id_and_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    extra = {"oauth2_issuer_url": "https://issuer.example/realm", "oauth2_audience": "pulsar", "oauth2_scope": ""}
    options = connect(monkeypatch, login="advisor", password="secret", extra=extra).options()
    assert options.admin is not None
    oauth2 = options.admin.oauth2
    assert oauth2 is not None
    assert (oauth2.issuer_url, oauth2.audience, oauth2.scope) == ("https://issuer.example/realm", "pulsar", None)
    assert oauth2.key is not None
    assert json.loads(oauth2.key.get_secret_value()) == {"client_id": "advisor", "client_secret": "secret"}
    assert "secret" not in repr(options).replace("client_secret", "")
    assert options.admin.basic_user is None


def test_a_token_may_be_in_a_file_of_the_worker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("eyJ.c.d")
    options = connect(monkeypatch, extra={"token_file": str(file)}).options()
    assert options.admin is not None
    assert options.admin.authorization() == "Bearer eyJ.c.d"


def test_two_ways_to_authenticate_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match="give only one of token_file, token_env, basic_user, oauth2"):
        connect(monkeypatch, password="eyJ.a.b", extra={"token_file": "/token"}).options()


def connect_zookeeper(monkeypatch: pytest.MonkeyPatch, **fields: Any) -> PulsarZooKeeperHook:
    document = {"conn_type": "pulsar_zookeeper", **fields}
    monkeypatch.setenv("AIRFLOW_CONN_ZOOKEEPER", json.dumps(document))
    return PulsarZooKeeperHook("zookeeper")


def test_zookeeper_has_a_connection_with_digest_and_tls(monkeypatch: pytest.MonkeyPatch) -> None:
    extra = {"hosts": "zk1:2281/pulsar", "tls": True, "tls_ca_file": "/ca.pem", "tls_verify_hostname": False}
    options = connect_zookeeper(monkeypatch, login="reader", password="secret", extra=extra).options()
    assert (options.hosts, options.tls, options.tls_verify_hostname) == ("zk1:2281/pulsar", True, False)
    assert options.tls_ca_file == Path("/ca.pem")
    assert options.digest_user == "reader"
    assert options.digest_password is not None
    assert options.digest_password.get_secret_value() == "secret"
    assert "secret" not in repr(options)


def test_it_takes_the_place_of_the_hosts_in_the_other_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    connect_zookeeper(monkeypatch, extra={"hosts": "zk2:2181"})
    connect(monkeypatch, extra={"zookeeper": "zk1:2181"})
    options = PulsarAdminHook("pulsar_default", "zookeeper").options()
    assert options.zookeeper is not None
    assert options.zookeeper.hosts == "zk2:2181"


def test_a_field_of_zookeeper_that_cannot_be_used_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UsageError, match=r"zookeeper\.hosts: not a ZooKeeper address"):
        connect_zookeeper(monkeypatch, extra={}).options()


def test_oxia_has_a_connection_with_a_token_and_tls(monkeypatch: pytest.MonkeyPatch) -> None:
    extra = {"url": "oxia://o:6648/broker", "tls": True, "tls_ca_file": "/ca.pem"}
    document = {"conn_type": "pulsar_oxia", "password": "secret", "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_OXIA", json.dumps(document))
    options = PulsarOxiaHook("oxia").options()
    assert (options.kind, options.name) == ("Oxia", "Oxia o:6648/broker")
    assert "secret" not in repr(options)
    connect(monkeypatch, extra={"zookeeper": "zk1:2181"})
    assert PulsarAdminHook("pulsar_default", "oxia").options().metadata_store == options


def test_the_address_of_an_oxia_may_stand_in_the_other_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    options = connect(monkeypatch, extra={"metadata_store": "oxia://o:6648/broker"}).options()
    assert options.metadata_store == OxiaConnection(url="oxia://o:6648/broker")


@pytest.mark.slow
def test_testing_a_zookeeper_that_is_not_there_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    works, message = connect_zookeeper(monkeypatch, extra={"hosts": "127.0.0.1:1"}).test_connection()
    assert not works
    assert "ZooKeeper 127.0.0.1:1: no session" in message


def test_without_a_secret_none_is_sent_and_zookeeper_is_optional(monkeypatch: pytest.MonkeyPatch) -> None:
    options = connect(monkeypatch).options()
    assert options.admin.authorization() is None
    assert options.zookeeper is None


def test_tls_files_and_the_host_name_check_reach_the_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    extra = {
        "tls_ca_file": "/ca.pem",
        "tls_cert_file": "/c.pem",
        "tls_key_file": "/k.pem",
        "tls_verify_hostname": False,
    }
    options = connect(monkeypatch, extra=extra).options()
    assert options.admin.tls_ca_file == Path("/ca.pem")
    assert (options.admin.tls_cert_file, options.admin.tls_key_file) == (Path("/c.pem"), Path("/k.pem"))
    assert options.admin.tls_verify_hostname is False


def test_a_connection_without_an_admin_url_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    works, message = connect(monkeypatch, extra={"admin_urls": ""}).test_connection()
    assert (works, message) == (False, "no admin URL: fill in Admin URLs of its connection")


def test_admin_urls_may_be_a_list_as_in_a_profile(monkeypatch: pytest.MonkeyPatch) -> None:
    options = connect(monkeypatch, extra={"admin_urls": ["http://b1:8080", "http://b2:8080"]}).options()
    assert options.admin is not None
    assert options.admin.admin_urls == ("http://b1:8080", "http://b2:8080")


@pytest.mark.parametrize(
    ("extra", "why"),
    [
        ({"admin_urls": 7}, "admin.admin_urls"),
        ({"listen": 65}, "'65' is not a duration"),
        ({"service_url": 5}, "not a service URL"),
        ({"metadata_store": ["zk:a:2181"]}, "not a metadata store"),
        ({"metadata_store": "zk:a:2181", "zookeeper": "a:2181"}, "not both"),
    ],
)
def test_a_field_of_another_type_is_named(monkeypatch: pytest.MonkeyPatch, extra: dict[str, Any], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        connect(monkeypatch, extra=extra).options()


def test_an_extra_that_is_no_object_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_PULSAR_DEFAULT", json.dumps({"conn_type": "pulsar_admin", "extra": ["a"]}))
    with pytest.raises(UsageError, match="not a JSON object"):
        PulsarAdminHook().options()


def test_a_connection_that_is_missing_fails_a_task_for_good() -> None:
    """A retry would not find it either."""
    missing = "there is no connection 'absent': make one of type pulsar_admin"
    with pytest.raises(AirflowFailException, match=missing), as_airflow_errors():
        PulsarAdminHook("absent").options()


def test_a_tasks_log_shows_escapes_for_what_would_hide_in_a_name() -> None:
    lines: list[str] = []
    logged(lines.append)("step-001\x1b[2J\n\u202e: confirmed")
    assert lines == ["step-001\\x1b[2J\\n\\u202e: confirmed"]


def test_a_failed_task_says_names_from_files_as_plain_text(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AIRFLOW__PULSAR_ADVISOR__ROOT", str(tmp_path))
    root, snapshot = Root(str(tmp_path), "prod-eu"), "20261120T083000Z"
    check = documents.check(success=False, severity="critical", title="x\nerror: \x1b[2J")
    write_file(
        root.snapshot(snapshot).folder("validation") / RESULT, documents.validation(check, success=False).content()
    )
    with pytest.raises(AirflowFailException, match=r"x\\nerror: \\x1b\[2J"):
        require_trusted_snapshot("prod-eu", snapshot)
    advice = documents.recommendation(sentence="x\nerror: \x1b[2J")
    write_file(root.snapshot(snapshot).folder("plans") / "recommendation.json", advice.content())
    with pytest.raises(AirflowSkipException, match=r"x\\nerror: \\x1b\[2J"):
        advised_plan("prod-eu", snapshot)


@pytest.mark.parametrize(("shedder", "dag"), [(ROLL, "pulsar_rolling_restart"), ("drain", "pulsar_rebalance")])
def test_a_report_names_the_dag_that_carries_its_plan_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, shedder: str, dag: str
) -> None:
    monkeypatch.setenv("AIRFLOW__PULSAR_ADVISOR__ROOT", str(tmp_path))
    monkeypatch.setattr(
        "pulsar_advisor_airflow.tasks.advice.clusters", lambda: {"prod-eu": SimpleNamespace(name="prod-eu")}
    )
    monkeypatch.setattr(
        "pulsar_advisor_airflow.tasks.advice.get_current_context", lambda: {"task": SimpleNamespace(outlets=())}
    )
    named: list[str] = []
    monkeypatch.setattr("pulsar_advisor.stages.report.run", lambda *_, dag, **__: (named.append(dag), "report.html"))
    root, snapshot = Root(str(tmp_path), "prod-eu"), "20261120T083000Z"
    advice = documents.recommendation(documents.combination(shedder), plan="a.json", digest="sha256:0")
    write_file(root.snapshot(snapshot).folder("plans") / "recommendation.json", advice.content())
    assert tasks.report("prod-eu", snapshot) == "report.html"
    assert named == [dag]


def test_the_missing_connection_to_a_metadata_store_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    connect(monkeypatch)
    with pytest.raises(UsageError, match="there is no connection 'absent': make one of type pulsar_zookeeper"):
        PulsarAdminHook("pulsar_default", "absent").options()


@pytest.mark.parametrize(
    ("brokers", "leader", "message"),
    [
        (("b1:8080", "b2:8080"), "b1:8080", "cluster 'prod', 2 active brokers, leader b1:8080"),
        (("b1:8080",), None, "cluster 'prod', 1 active broker, leader unknown"),
    ],
)
def test_testing_a_connection_counts_the_brokers(
    monkeypatch: pytest.MonkeyPatch, brokers: tuple[str, ...], leader: str | None, message: str
) -> None:
    found = SimpleNamespace(cluster_name="prod", brokers=brokers, leader=leader)
    monkeypatch.setattr("pulsar_advisor.capture.session.identify", lambda _client: found)
    assert connect(monkeypatch).test_connection() == (True, message)


def test_testing_a_connection_to_nobody_tells_why(monkeypatch: pytest.MonkeyPatch) -> None:
    works, message = connect(monkeypatch, extra={"admin_urls": "http://127.0.0.1:1"}).test_connection()
    assert not works
    assert "connection refused" in message


def test_a_decorated_function_gives_a_stage_its_options(monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
    from airflow.sdk import dag, task

    submitted: list[list[str]] = []
    monkeypatch.setattr(SparkSubmitOperator, "execute", lambda self, _context: submitted.append(self.application_args))

    @task.pulsar_stage(stage="recommend", root="/root", cluster="demo", snapshot="20261121T083000Z")
    def stricter(percent: int) -> list[str]:
        return [f"--set=loadBalancerBrokerThresholdShedderPercentage={percent}"]

    @dag(schedule=None)
    def theirs() -> None:
        stricter(5)

    theirs().get_task("stricter").execute({})
    assert submitted[0][4:] == ["--set=loadBalancerBrokerThresholdShedderPercentage=5"]


def test_an_edited_snapshot_gives_a_stage_no_options(monkeypatch: pytest.MonkeyPatch) -> None:
    from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator

    from pulsar_advisor_airflow.operators.spark_stage import PulsarSparkStageOperator

    monkeypatch.setattr(SparkSubmitOperator, "execute", lambda _self, _context: pytest.fail("submitted"))
    edited = ["20261121T083000Z", "--root=/theirs"]
    stage = PulsarSparkStageOperator(task_id="v", stage="validate", root="/r", cluster="c", snapshot=edited)
    with pytest.raises(AirflowFailException, match=r"--root=/theirs.* is not a snapshot's id"):
        stage.execute({})


def test_a_verdict_of_a_job_is_a_short_message(monkeypatch: pytest.MonkeyPatch) -> None:
    """It goes to whoever is called; Airflow's own is the command."""
    from airflow.providers.apache.spark.operators.spark_submit import SparkSubmitOperator
    from airflow.sdk.exceptions import AirflowException

    from pulsar_advisor_airflow.operators.spark_stage import PulsarSparkStageOperator

    def ends(_self: object, _context: object) -> None:
        raise AirflowException("Cannot execute: spark-submit --name … --root /root. Error code is: 3.")

    monkeypatch.setattr(SparkSubmitOperator, "execute", ends)
    stage = PulsarSparkStageOperator(task_id="v", stage="validate", root="/r", cluster="c", snapshot="20261121T083000Z")
    with pytest.raises(AirflowFailException, match=r"^validate ended with exit code 3: its last line in the log"):
        stage.execute({})


@pytest.mark.parametrize(
    "plan", [None, {}, "sha256:00", {"snapshot": 20261121, "file": "a--000000000000.json", "digest": "sha256:00"}]
)
@pytest.mark.parametrize("operator", [PlanApprovalOperator, PulsarApplyOperator, PulsarRollOperator])
def test_a_task_that_was_handed_no_plan_fails_for_good(operator: Any, plan: Any, tmp_path: Path) -> None:
    """As when somebody marks the task above it as a success, or sets its XCom."""
    reached = {} if operator is PlanApprovalOperator else {"pulsar_conn_id": "pulsar_default"}
    task = operator(task_id="t", plan=plan, root=str(tmp_path), cluster="demo", **reached)
    task.operator_extra_links = ()
    ti = SimpleNamespace(try_number=1, max_tries=0, task=task, start_date=None)
    with pytest.raises(AirflowFailException, match="no plan was handed to this task"):
        task.execute({"ti": ti, "dag_run": SimpleNamespace(start_date=None)})


@pytest.mark.parametrize(
    "task",
    [
        lambda: tasks.propose("demo", None),
        lambda: tasks.judged_from("demo", None),
        lambda: tasks.verify("demo", None, ""),
    ],
)
def test_a_task_that_proposes_or_judges_a_plan_and_was_handed_none_fails_for_good(
    task: Callable[[], object], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AIRFLOW__PULSAR_ADVISOR__ROOT", str(tmp_path))
    with pytest.raises(AirflowFailException, match="no plan was handed to this task"):
        task()


@pytest.mark.parametrize("is_stopped", [False, True])
@pytest.mark.parametrize(
    ("state", "first", "to_do"),
    [
        ("pending", "", "clear this task to continue"),
        ("pending", ", once it is approved again", "clear this task to continue, once it is approved again"),
        ("pending", None, "to go on, make a new plan"),
        ("failed", "", "to go on, make a new plan"),
    ],
)
def test_a_run_that_ended_early_asks_for_what_can_be_done_and_is_retried_if_only_its_worker_ended(
    monkeypatch: pytest.MonkeyPatch, state: StepState, first: str | None, to_do: str, is_stopped: bool
) -> None:
    task = PulsarApplyOperator(task_id="t", plan={}, root="/root", cluster="demo", pulsar_conn_id="pulsar_default")
    if is_stopped:
        task.on_kill()
    call = Call("PUT", "/admin/v2/namespaces/shop/orders/0x00000000_0x80000000/unload", {}, None)
    step = AppliedStep(id="step-001", action="unload", bundle="b", state=state, detail="", request=call)
    result = AttemptResult(
        first=first,
        outcome="partial",
        digest="sha256:0",
        run=1,
        sentence="0 of 1 steps confirmed",
        steps=(step,),
        undoable_steps=(),
        refusals=(),
        still_off=(),
    )
    monkeypatch.setattr(task, "_run", lambda *_, **__: result)
    ti = SimpleNamespace(try_number=1, max_tries=0, task=task, start_date=None)
    with pytest.raises(AirflowException, match=f"^0 of 1 steps confirmed; {to_do}$") as failed:
        task.go_on({"ti": ti, "dag_run": SimpleNamespace(start_date=None)}, {"waited": as_json(Parking("pause", 60))})
    assert failed.type is (AirflowException if is_stopped else AirflowFailException)


def test_a_gate_that_is_set_by_hand_has_a_listener() -> None:
    from airflow import plugins_manager

    from pulsar_advisor_airflow import listeners

    [plugin] = [plugin for plugin in plugins_manager._get_plugins()[0] if plugin.name == "pulsar_advisor"]
    assert plugin.listeners == [listeners]


@pytest.mark.parametrize(("name", "holds"), [("restart_order", "restarts"), ("scale", "sizes")])
def test_answers_without_a_plan_are_data_that_a_task_may_return(
    monkeypatch: pytest.MonkeyPatch, name: str, holds: str
) -> None:
    """Airflow hands on what its own serialization knows: no numbers of numpy."""
    from pulsar_advisor_airflow import tasks
    from unit.planning.kinds.clusters import cluster, room

    asked = room(cluster({"a": [20, 20], "b": [30]}))
    monkeypatch.setattr(f"pulsar_advisor.stages.{name}.room_of", lambda *_: asked)
    monkeypatch.setattr(f"pulsar_advisor.stages.{name}.warn_of_caveats", lambda *_: None)
    answer = json.loads(json.dumps(getattr(tasks, name)("demo", "20261121T083000Z")))
    assert len(answer[holds]) >= 2
