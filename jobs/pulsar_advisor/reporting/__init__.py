"""Output: HTML report, terminal tables, machine-readable outputs."""
