"""The options that an installation sets in the section `[pulsar_advisor]` of Airflow's configuration."""

from __future__ import annotations

import re
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import SplitResult, quote, urlsplit

from pulsar_advisor.model.errors import UsageError

if TYPE_CHECKING:
    from pulsar_advisor.admin.webhook import Webhook

SECTION: Final = "pulsar_advisor"

PAGES_PREFIX: Final = "/pulsar-advisor"
"""Where the web server serves our pages."""

OPTIONS: Final[dict[str, dict[str, str | bool]]] = {
    "root": {
        "description": "Where snapshots, tables, plans and reports are: a path that is the same for Airflow and Spark, "
        "or an object-store URL.",
        "default": "/var/lib/pulsar-advisor",
        "example": "s3://balance/advisor",
    },
    "ledger": {
        "description": "SQLAlchemy URL of the ledger of proposals, approvals and runs, or env:NAME or file:PATH that "
        "holds it. Empty: SQLite in the root.",
        "default": "",
        "example": "postgresql://advisor@db/ledger",
        "sensitive": True,
    },
    "approval_policy": {
        "description": "Approval policy (YAML): who may approve what, and which plans need no person. Empty: a person "
        "other than the proposer, authenticated by Airflow.",
        "default": "",
        "example": "/etc/pulsar-advisor/approval-policy.yaml",
    },
    "clusters": {
        "description": "Registry of clusters: a YAML file. Empty: one cluster, described by the next three options.",
        "default": "",
        "example": "/etc/pulsar-advisor/clusters.yaml",
    },
    "cluster": {
        "description": "Name of the cluster in the root: a letter, then letters, digits, dot, dash, underscore.",
        "default": "pulsar",
        "example": "prod-eu",
    },
    "pulsar_conn_id": {
        "description": "The connection (type pulsar_admin) of that cluster.",
        "default": "pulsar_default",
        "example": "pulsar_prod_eu",
    },
    "zookeeper_conn_id": {
        "description": "The connection (type pulsar_zookeeper or pulsar_oxia) to its metadata store. Empty: the store "
        "of the other connection, if it names any.",
        "default": "",
        "example": "zookeeper_prod_eu",
    },
    "spark_conn_id": {
        "description": "The connection (type spark) that the Spark stages are submitted to.",
        "default": "spark_default",
        "example": "spark_batch",
    },
    "spark_pool": {
        "description": "The pool whose slots limit how many Spark stages run at the same time, over all clusters. It "
        "must exist: tasks in a missing pool never start.",
        "default": "default_pool",
        "example": "spark",
    },
    "one_spark_task": {
        "description": "Whether one task, snapshot, runs normalize and validate in one Spark application, which starts "
        "once, instead of a task and an application for each.",
        "type": "boolean",
        "default": "false",
        "example": "true",
    },
    "snapshot_schedule": {
        "description": "Cron expression of snapshots, in UTC, for clusters whose entry in the registry has none.",
        "default": "*/15 * * * *",
        "example": "0 * * * *",
    },
    "advice_notifiers": {
        "description": "Notified when the advice of pulsar_recommend changes: import paths of functions that return an "
        "Airflow notifier, separated by commas.",
        "default": "",
        "example": "our_notifiers.balance_channel",
    },
    "guard_notifiers": {
        "description": "Notified when a cluster's own balancer, which a run switched off, could not be switched on "
        "again: written as advice_notifiers.",
        "default": "",
        "example": "our_notifiers.on_call",
    },
    "call_notifiers": {
        "description": "Called when an approval waits, a run is paused, a drained broker waits for its restart, "
        "a task failed, a run was abandoned, or snapshots are overdue: written as advice_notifiers; in their "
        "templates, call has event, cluster, sentence and link.",
        "default": "",
        "example": "our_notifiers.pager",
    },
    "webhook": {
        "description": "URL that gets a message in each of these cases: https, or env:NAME or file:PATH that holds it.",
        "default": "",
        "example": "https://hooks.example/balance",
        "sensitive": True,
    },
    "webhook_key": {
        "description": "What signs those messages, as Standard Webhooks defines it: env:NAME or file:PATH that holds "
        "whsec_ and 24 to 64 bytes in base64.",
        "default": "",
        "example": "file:/etc/pulsar-advisor/webhook.key",
    },
    "webhook_ca_file": {
        "description": "Certificates to trust for that URL, instead of the system's: a path on the workers.",
        "default": "",
        "example": "/etc/pulsar-advisor/ca.pem",
    },
    "heads": {
        "description": "Where the ledger's head is copied when a run ends and every hour, out of reach of the ledger's "
        "owner: a folder for this ledger alone (path or object-store URL), log, or webhook (the one above); separate "
        "several by commas.",
        "default": "",
        "example": "s3://audit-with-retention/heads,log",
    },
    "retention": {
        "description": "How long pulsar_history keeps raw files, snapshots and folded days: the options of `snapshots "
        "prune`. What a plan refers to, and the newest snapshot, stay.",
        "default": "--tables 30d --history 400d",
        "example": "--raw 3d --tables 14d --thin 1h:30d,1d:1y --history 400d",
    },
}
"""In the format of a provider's `config` section; each option is also `AIRFLOW__PULSAR_ADVISOR__<NAME>`."""


_RELATIVE: Final = {"root": re.compile(r"(?!/|.*://)"), "ledger": re.compile(r"sqlite(\+\w+)?:///(?!/)")}


def option(name: str) -> str:
    """The value of an option. Raises `UsageError` for a root or ledger that differs between processes."""
    from airflow.sdk import conf

    # A value that a command prints (`…_CMD`) ends with a line feed.
    value: str = conf.get(SECTION, name, fallback=OPTIONS[name]["default"]).strip()
    if name in _RELATIVE and _RELATIVE[name].match(value):
        raise different_by_process(name, value)
    return value


def different_by_process(name: str, place: str) -> UsageError:
    """The error about an option that names a relative path."""
    return UsageError(
        f"[{SECTION}] {name} is '{place}', which each Airflow process looks up in its own working folder: make the "
        "path absolute"
    )


def one_spark_task() -> bool:
    """The option of this name."""
    from airflow.sdk import conf

    name = "one_spark_task"
    return bool(conf.getboolean(SECTION, name, fallback=OPTIONS[name]["default"] == "true"))


def advice_notifiers() -> list[Any]:
    """The notifiers of the option of this name, and the webhook. Raises `ImportError` for a missing one."""
    return _notifiers("advice_notifiers", "pulsar_advisor_airflow.notifiers.AdviceWebhook")


def guard_notifiers() -> list[Any]:
    """The same for the option of this name."""
    return _notifiers("guard_notifiers", "pulsar_advisor_airflow.notifiers.BalancerWebhook")


def call_notifiers() -> list[str]:
    """The import paths in the option of this name: each notifier is made when needed, so that it fails alone."""
    return _paths("call_notifiers")


def made_notifier(path: str) -> Any:
    """The notifier that the function at an import path returns. Raises `ImportError`, and what the function raises."""
    return resolve_name(path)()


def _notifiers(name: str, of_webhook: str) -> list[Any]:
    return [made_notifier(path) for path in (*_paths(name), *([of_webhook] if option("webhook") else []))]


def _paths(name: str) -> list[str]:
    return [path.strip() for path in option(name).split(",") if path.strip()]


def webhook() -> Webhook | None:
    """The webhook, if configured. Raises `UsageError` for an address or key that can't be used."""
    from pulsar_advisor.admin.webhook import Webhook

    address, ca_file = option("webhook"), option("webhook_ca_file")
    return Webhook(address, option("webhook_key") or None, Path(ca_file) if ca_file else None) if address else None


def job(stage: str) -> str:
    """The file that spark-submit runs for a stage."""
    import pulsar_advisor

    return str(Path(pulsar_advisor.__path__[0]) / "spark_jobs" / f"{stage}.py")


def page_link(*parts: str) -> str:
    """The address of one of our pages, relative to the host of Airflow's web server."""
    return _address(f"{PAGES_PREFIX}/{'/'.join(quote(part, safe=':') for part in parts)}")


def airflow_link(*parts: str) -> str:
    """The address of one of Airflow's own pages, relative to the host of its web server."""
    return _address(f"/{'/'.join(parts)}")


def dag_run_link(dag: str, run: str, *parts: str) -> str:
    """The address of Airflow's page about a DAG run, or of a part of it, relative to the host of its web server."""
    return _address("/".join(("/dags", dag, "runs", quote(run, safe=""), *parts)))


def with_host(address: str) -> str:
    """An address with its host, for a message; unchanged if `[api] base_url` names no host."""
    base = _base()
    return f"{base.scheme}://{base.netloc}{address}" if base.netloc else address


def _address(path: str) -> str:
    return f"{_base().path.rstrip('/')}{path}"


def _base() -> SplitResult:
    from airflow.sdk import conf

    return urlsplit(str(conf.get("api", "base_url", fallback="")))


def report_link(cluster: str, snapshot: str) -> str:
    """The address of a snapshot's report."""
    return page_link("clusters", cluster, "reports", snapshot)
