"""Random numbers for jitter and shuffling, behind the port `Draw`."""

import secrets
import time


def draw() -> float:
    """Uniform over [0, 1)."""
    return secrets.randbits(53) / (1 << 53)


def pause_below(ceiling_seconds: float) -> None:
    """Wait for a random time below the ceiling."""
    time.sleep(ceiling_seconds * draw())
