"""Measurements of the app on the embedded AWS that a reader can repeat. Each module measures and prints one."""
