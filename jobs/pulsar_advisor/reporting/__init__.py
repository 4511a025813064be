"""What people read: HTML report, terminal tables, machine-readable outputs."""
