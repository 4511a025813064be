"""The Pulsar admin REST API over HTTP: transport, and a read client that can send nothing but GET."""
