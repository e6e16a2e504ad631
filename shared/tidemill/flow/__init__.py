"""The built-in job type of flows."""
