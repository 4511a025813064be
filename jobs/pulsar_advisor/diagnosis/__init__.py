"""`doctor`: asks a cluster what a capture would ask, and judges the answers."""
