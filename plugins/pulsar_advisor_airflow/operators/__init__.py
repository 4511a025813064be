"""Operators: the stages that talk to a cluster or ask a person."""
