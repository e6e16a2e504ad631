"""Random numbers for jitter and shuffling, behind the port `Draw`."""

import secrets


def draw() -> float:
    """Uniform over [0, 1)."""
    return secrets.randbits(53) / (1 << 53)
