"""Hooks: how Airflow connections become the product's own connection options."""
