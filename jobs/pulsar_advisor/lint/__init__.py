"""Rules about a cluster's load balancing settings: what they can't do, hide or undo on this cluster."""
