"""One function a stage, from files to files: what the command line, the Spark jobs and the Airflow operators call."""
