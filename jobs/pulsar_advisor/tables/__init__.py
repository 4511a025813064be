"""Tables on Spark: raw snapshot to Parquet, Parquet to cluster state, and the fan-out over strategies."""
