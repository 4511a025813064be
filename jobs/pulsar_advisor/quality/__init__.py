"""Great Expectations on Spark: decides whether a snapshot can be trusted."""
