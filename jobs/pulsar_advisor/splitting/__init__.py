"""Bundle splitting: where a bundle is cut, and who decides that it is."""
