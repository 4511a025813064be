"""Begins when a plan was carried out on a cluster and did what was predicted."""

from airflow.sdk import dag, get_current_context, task

from pulsar_advisor_airflow.assets import verified
from pulsar_advisor_airflow.clusters import cluster


@task
def plans():
    """The digests of the plans that were verified since the last run."""
    events = get_current_context()["triggering_asset_events"].values()
    return [event.extra["digest"] for of_asset in events for event in of_asset]


@dag(schedule=[verified(cluster("prod-eu"))])
def after_verified():
    """One task, in whose place comes what is to happen then."""
    plans()


after_verified()
