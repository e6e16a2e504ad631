"""Environment variables that a stack sets for its functions."""

import os

from tidemill.domain.errors import TidemillError


class SettingError(TidemillError):
    """An environment variable that the stack should have set is missing."""


def setting(name: str) -> str:
    """Raises `SettingError`."""
    try:
        return os.environ[name]
    except KeyError:
        raise SettingError(f"{name} is not set. The stack sets it: deploy this function with its stack.") from None
