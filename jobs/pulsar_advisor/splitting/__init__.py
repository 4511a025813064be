"""Bundle splitting: where a bundle is cut, and who decides to split it."""
