"""The engine's own job type."""
