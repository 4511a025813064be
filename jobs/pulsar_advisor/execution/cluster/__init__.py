"""What a run does to a cluster and sees of it."""
