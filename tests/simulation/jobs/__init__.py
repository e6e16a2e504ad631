"""Job types that use every feature of a handler, the same in both versions of the code."""
