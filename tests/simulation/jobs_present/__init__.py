"""Job types that only the present version has, or has in another form."""
