"""Faults of our own protocol. The checks must find each of them."""
