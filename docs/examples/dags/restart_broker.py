"""Restarts the broker that a roll waits for, and says so.

Whoever receives the webhook `roll.waiting` triggers it: the message names cluster, digest and broker, by its name in
Kubernetes, POD.SERVICE.NAMESPACE.svc. The roll itself waits until the broker is healthy.
"""

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import Param, chain, dag, task

from pulsar_advisor_airflow import tasks


@dag(schedule=None, params={name: Param(type="string") for name in ("cluster", "digest", "broker")})
def restart_broker():
    """restart → report_restart."""
    restart = BashOperator(
        task_id="restart",
        bash_command='kubectl delete pod --namespace "$NAMESPACE" -- "$POD"',
        env={"POD": "{{ params.broker.split('.')[0] }}", "NAMESPACE": "{{ params.broker.split('.')[2] }}"},
        append_env=True,
    )
    said = task(tasks.report_restart)("{{ params.cluster }}", "{{ params.digest }}", "{{ params.broker }}")
    chain(restart, said)


restart_broker()
