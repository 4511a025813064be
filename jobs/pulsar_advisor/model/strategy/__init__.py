"""What every strategy has: a registry entry, its answers with their reasons, and its memory."""
