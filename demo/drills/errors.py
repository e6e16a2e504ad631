"""The error of a drill."""


class DrillError(Exception):
    """The drill failed. The text says at which step."""


class NotRecoveredError(DrillError):
    """The stage did not recover from its incident."""
