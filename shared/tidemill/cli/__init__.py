"""The `tidemill` console script: thin commands over the use cases and the adapters."""
