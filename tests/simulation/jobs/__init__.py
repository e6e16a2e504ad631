"""Job types that do everything a handler may."""
