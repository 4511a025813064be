"""A rolling restart, turn by turn: brokers are drained here, and restarted by others."""
