"""What must hold for a figure to mean anything."""

from tidemill.local.wait import WaitError


def require(holds: bool, message: str) -> None:  # noqa: FBT001 - reads as a sentence
    """Raises `WaitError`."""
    if not holds:
        raise WaitError(message)
