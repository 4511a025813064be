"""`doctor`: sends a cluster the requests that a capture would, and judges the responses."""
