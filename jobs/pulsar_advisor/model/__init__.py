"""The domain in plain typed data: cluster state, bundle ranges, load arithmetic, settings, plans."""
