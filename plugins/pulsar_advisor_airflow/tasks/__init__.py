"""The light tasks between the stages: they read a stage's result file and make a decision, or pass an id on.

Plain functions, which the DAG files turn into tasks; `cluster` is a cluster's name in the root. Every exit code of the
product but 1 becomes a failure without retry.
"""

from pulsar_advisor_airflow.tasks.advice import advised_plan, lint, new_advice, report, restart_order, scale, upgrade
from pulsar_advisor_airflow.tasks.history import append_to_history, seal_history, thin_history, write_index
from pulsar_advisor_airflow.tasks.maintenance import audit_ledger, clusters_to_restore, restore_guard
from pulsar_advisor_airflow.tasks.outcome import judged_from, require_success, verify
from pulsar_advisor_airflow.tasks.proposals import offered_undo, plan_by_digest, propose, undo_plan
from pulsar_advisor_airflow.tasks.runs import report_restart
from pulsar_advisor_airflow.tasks.snapshots import require_trusted_snapshot, snapshot_to_recommend_on
from pulsar_advisor_airflow.tasks.watch import overdue_clusters

__all__ = [
    "advised_plan",
    "append_to_history",
    "audit_ledger",
    "clusters_to_restore",
    "judged_from",
    "lint",
    "new_advice",
    "offered_undo",
    "overdue_clusters",
    "plan_by_digest",
    "propose",
    "report",
    "report_restart",
    "require_success",
    "require_trusted_snapshot",
    "restart_order",
    "restore_guard",
    "scale",
    "seal_history",
    "snapshot_to_recommend_on",
    "thin_history",
    "undo_plan",
    "upgrade",
    "verify",
    "write_index",
]
