"""The Airflow side of the Pulsar Rebalance Advisor: provider, hooks, operators."""
