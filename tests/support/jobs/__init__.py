"""Job types whose behaviour a test sets."""
