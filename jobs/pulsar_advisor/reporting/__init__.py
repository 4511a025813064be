"""Output: the HTML report, terminal tables, and machine-readable forms."""
