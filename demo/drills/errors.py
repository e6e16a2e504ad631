"""The error of a drill."""


class DrillError(Exception):
    """The drill failed. The text says at which step."""


class SlowMachineError(DrillError):
    """The machine is too slow to tell an incident by its alarm."""


class NotRecoveredError(DrillError):
    """The stage did not recover from its incident."""
