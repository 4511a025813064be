"""What is asked for: strategies, a goal, limits, and settings to assume."""
