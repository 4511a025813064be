"""Java's numbers, orders and expressions, where Pulsar's answers depend on them."""
