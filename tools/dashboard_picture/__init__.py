"""Draws the synthesised dashboard with the data of a demo run: `python -m tools.dashboard_picture PNG`."""
