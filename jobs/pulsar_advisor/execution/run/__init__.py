"""Carries out a run: steps in waves, under a guard, each step only if its preconditions hold."""
