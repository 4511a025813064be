"""The guard: keeps the cluster's own balancer off during a run, and restores it afterwards, whoever does it."""
