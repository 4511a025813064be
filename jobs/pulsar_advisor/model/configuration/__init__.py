"""The load balancer's settings, and the classes and kinds that they name."""
