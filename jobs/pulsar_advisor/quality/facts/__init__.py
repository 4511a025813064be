"""The tables as the suites see them: facts across rows, tables and snapshots joined once. One table per file."""
