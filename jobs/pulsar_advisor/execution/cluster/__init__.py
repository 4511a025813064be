"""What a run reads from a cluster and sends to it."""
