"""The tables of `pulsar-perf monitor-brokers`, from a snapshot or from a live cluster."""
