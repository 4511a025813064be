"""Who may approve which plan, and whether a plan is what the advisor computed."""
