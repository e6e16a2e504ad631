"""Job types that only the next version has, or has in another form."""
