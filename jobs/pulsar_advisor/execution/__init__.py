"""The only code that writes to a cluster: approval policy, ledger, executor, verification."""
