"""The advisor's pages in Airflow's web server: clusters, snapshots, plans, and runs as they go on."""
