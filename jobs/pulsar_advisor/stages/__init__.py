"""The eight stages, one module a verb with one `run`: what the command line, the Spark jobs and Airflow call.

`capture → normalize → validate → recommend → report → approve → apply → verify`
"""
