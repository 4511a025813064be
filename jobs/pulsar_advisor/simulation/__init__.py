"""The cluster evolving cycle by cycle under its own strategies or others."""
