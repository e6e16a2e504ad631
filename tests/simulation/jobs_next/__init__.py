"""Job types as the next version has them, and this one otherwise or not at all."""
