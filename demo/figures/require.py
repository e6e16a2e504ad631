"""Stops a measurement whose conditions do not hold."""

from tidemill.local.wait import WaitError


def require(holds: bool, message: str) -> None:  # noqa: FBT001 - reads as a sentence
    """Raises `WaitError` with `message` unless the condition holds."""
    if not holds:
        raise WaitError(message)
