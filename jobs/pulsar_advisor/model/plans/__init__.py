"""A plan, the goal behind it, and the canonical form that its digest is taken of."""
