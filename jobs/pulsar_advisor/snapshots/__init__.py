"""Whole raw snapshots: transfer one to another machine, summarize one, remove old ones."""
