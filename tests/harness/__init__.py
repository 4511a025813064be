"""A real Pulsar cluster on this machine, for tests and for play: jars, processes, CPU sensor, load."""
