"""Job files of a deployment that does not work."""
