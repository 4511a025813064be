"""How busy brokers will be after moves, how sure that is, and what no move can change."""
