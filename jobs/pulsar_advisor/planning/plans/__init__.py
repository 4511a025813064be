"""From a request to a plan: ordered steps with expectations, confidence and needed consents."""
