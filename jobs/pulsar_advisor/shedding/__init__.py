"""Load shedders: which bundles leave which broker. One module a shedder; `registry` lists them."""
