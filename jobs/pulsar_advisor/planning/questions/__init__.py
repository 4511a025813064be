"""Questions that are answered without a plan: why, how many brokers, in which order to restart."""
