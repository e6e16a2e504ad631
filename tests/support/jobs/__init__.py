"""Job types that do what a test tells them."""
