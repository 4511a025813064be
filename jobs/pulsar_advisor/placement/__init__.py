"""Placement: which broker receives a bundle. One module a strategy; `registry` lists them."""
