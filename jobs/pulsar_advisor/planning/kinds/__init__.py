"""Plan kinds: what an operator wants of a cluster that no strategy of Pulsar's does by itself."""
