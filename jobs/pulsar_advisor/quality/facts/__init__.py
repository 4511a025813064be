"""The tables as the suites see them, with facts joined from other rows, tables and snapshots. One file per table."""
