"""The error of a drill."""


class DrillError(Exception):
    """The drill failed. The text says at which step."""
