"""What Pulsar's strategies propose for a cluster, before it becomes a plan."""
