"""Pulsar Rebalance Advisor: previews, explains and carries out load balancing of Apache Pulsar clusters."""
