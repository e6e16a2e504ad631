"""What the sources of events deliver: `intake` publishes it, and `readers` have one module for each shape."""
