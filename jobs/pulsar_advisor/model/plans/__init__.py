"""A plan, the goal behind it, and the canonical form from which its digest is computed."""
