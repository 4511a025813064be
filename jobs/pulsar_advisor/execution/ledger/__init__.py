"""The ledger: what was proposed, approved and done, and the proof that nothing was changed since."""
