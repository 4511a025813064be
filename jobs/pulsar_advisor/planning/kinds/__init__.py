"""Plan kinds: what an operator may want for a cluster and no Pulsar strategy does by itself."""
