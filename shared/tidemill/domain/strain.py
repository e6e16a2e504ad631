"""The level of strain that an operator has set, and which submissions it sheds. Pure."""

from enum import StrEnum
from typing import Any, Final

from tidemill.domain import option_values
from tidemill.domain.errors import InvalidSettingError

#: The setting of the runtime configuration that has the level.
LEVEL_SETTING: Final = "strain.level"
NO_STRAIN: Final = 0
HIGHEST_LEVEL: Final = 3


class Importance(StrEnum):
    """How much a job type matters under strain."""

    NORMAL = "normal"
    #: Under strain, the HTTP API refuses its submissions.
    SHEDDABLE = "sheddable"


def sheds(importance: Importance, *, level: int) -> bool:
    return importance is Importance.SHEDDABLE and level > NO_STRAIN


def level_of(value: Any) -> int:
    """Of the value of the setting. Raises `InvalidSettingError`."""
    try:
        level = option_values.whole(LEVEL_SETTING, value)
    except ValueError as error:
        raise InvalidSettingError(str(error)) from None
    if not NO_STRAIN <= level <= HIGHEST_LEVEL:
        raise InvalidSettingError(f"{LEVEL_SETTING} is {level}; it must lie within {NO_STRAIN} and {HIGHEST_LEVEL}")
    return level
