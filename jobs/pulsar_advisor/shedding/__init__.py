"""Load shedders: which bundles leave which broker. One module per shedder; `registry` lists them."""
