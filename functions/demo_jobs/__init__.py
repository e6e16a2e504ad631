"""Job types that misbehave on purpose. Only the local stage carries them."""
