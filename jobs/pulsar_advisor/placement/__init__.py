"""Placement: which broker receives a bundle. One module per strategy; `registry` lists them."""
