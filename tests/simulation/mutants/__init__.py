"""Faults of our own protocol, each of which the checks must find."""
