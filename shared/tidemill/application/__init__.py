"""The use cases, over ports. They return outcomes and do not log."""
