"""A cluster's history: its snapshots folded into one immutable set of tables per day, and what these show."""
