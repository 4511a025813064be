"""What messages ask a reader to do who sees them in Airflow, on a page or in a task's log."""

from __future__ import annotations

from typing import Final

from pulsar_advisor.model.text.reader import Reader

IN_AIRFLOW: Final = Reader(
    resume_run="clear its task apply, or trigger pulsar_rebalance with its digest",
    end_run="press Stop for good on its page",
    approve="trigger pulsar_rebalance with its digest",
    apply_plan="pulsar_rebalance, triggered with its digest, carries it out",
    go_on_with_roll="pulsar_rolling_restart, triggered with its digest, carries it out",
    drain_again="clear its task roll",
    plan_turn_again="press End for good on the roll's page, and make a new roll",
    stop_roll="press Pause or End for good on its page",
    end_roll="press End for good on its page",
    restore_balancer="pulsar_maintenance, which restores it",
    decide_about_balancer="only somebody in a shell can say which (`pulsar-advisor guard`)",
    audit="run pulsar_maintenance, which audits it",
    name_heads="set the option heads of pulsar_advisor",
    name_ledger="set the option ledger of pulsar_advisor",
    name_admin_url="fill in Admin URLs of its connection",
    name_store="set Metadata store of its connection to the brokers' metadataStoreUrl, or leave it empty",
    fold_days="trigger pulsar_history, which folds them",
    see_plans="its page in Airflow lists them",
    see_snapshots="its page in Airflow lists them",
    knows_consents_by="title",
)
