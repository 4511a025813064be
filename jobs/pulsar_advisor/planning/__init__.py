"""From a cluster state to a plan: propose, forecast, explain, compare."""
