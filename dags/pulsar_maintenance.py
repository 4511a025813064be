"""# Maintenance of the guard and the ledger

Runs every hour, for all clusters; a failure for one doesn't stop the others.

| task | what it does |
|---|---|
| `clusters` | lists the clusters whose balancer a run left off, those without an entry in the registry too |
| `restore_guard` | switches a cluster's own balancer on again, or has the notifiers say why it can't |
| `audit_ledger` | fails if the ledger was changed, or cut off since this DAG last ran |

The state store of the asset `pulsar-ledger` keeps the ledger's head for the next run's audit.

It sends nothing else to a cluster. The approval of the run that switched the balancer off covers its restoration.
"""

from __future__ import annotations

from airflow.sdk import dag, task

from pulsar_advisor_airflow import tasks
from pulsar_advisor_airflow.assets import audited_ledger
from pulsar_advisor_airflow.configuration import guard_notifiers
from pulsar_advisor_airflow.notifiers import Call
from pulsar_advisor_airflow.release import require_release
from pulsar_advisor_airflow.run_limits import unattended

require_release("0.1.0", __file__)


@dag(
    schedule="23 * * * *",
    doc_md=__doc__,
    tags=["pulsar", "maintenance"],
    **unattended(),
    render_template_as_native_obj=True,
)
def pulsar_maintenance() -> None:
    """The guard of each cluster, and the audit of the ledger."""
    names = task(task_id="clusters")(tasks.clusters_to_restore)()
    by_name = {"map_index_template": "{{ task.op_kwargs['cluster'] }}"}
    called = {"on_failure_callback": [*guard_notifiers(), Call("task.failed")]}
    task(**called, **by_name)(tasks.restore_guard).expand(cluster=names)
    task(inlets=[audited_ledger()])(tasks.audit_ledger)()


pulsar_maintenance()
