"""The eight stages, one module per verb with one `run`, called by the command line, the Spark jobs and Airflow.

`capture → normalize → validate → recommend → report → approve → apply → verify`
"""
