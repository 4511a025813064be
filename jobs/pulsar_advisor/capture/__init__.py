"""Reading a cluster into a raw snapshot, without changing anything on it."""
