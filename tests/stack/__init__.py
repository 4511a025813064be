"""A container engine, and stand-ins for the images that docker-compose.yaml takes from elsewhere."""
