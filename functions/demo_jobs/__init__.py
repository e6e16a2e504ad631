"""Job types that misbehave on purpose. Only the local stage contains them."""
