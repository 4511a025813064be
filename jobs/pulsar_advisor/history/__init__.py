"""What lasts of a cluster: its snapshots folded into one immutable set of tables for each day, and what they show."""
