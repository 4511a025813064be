"""A run: its steps in waves, under a guard, each after its preconditions."""
