"""Job types as this version has them, and the next one otherwise or not at all."""
