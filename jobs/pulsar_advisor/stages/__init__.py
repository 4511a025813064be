"""The verbs that read or write files, one module each, called by the command line, the Spark jobs and Airflow.

`capture → normalize → validate → recommend → report → approve → apply → verify`

A stage reads what it needs, calls pure functions on typed data, and writes its result. Some modules serve other stages:
`recommend_shedder` and `simulate_combination` are work on an executor, `seal` and `propose` record in the ledger what
was written, `derive` computes a plan again.
"""
