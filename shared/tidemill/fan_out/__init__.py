"""The built-in job type of events."""
