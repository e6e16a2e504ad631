"""The level of strain: which submissions it sheds or defers, and how much it slows each lane down. Pure."""

from datetime import timedelta
from enum import StrEnum
from typing import Any, Final

from tidemill.domain import option_values
from tidemill.domain.errors import InvalidSettingError
from tidemill.names import Lane

#: The setting of the runtime configuration that has the level.
LEVEL_SETTING: Final = "strain.level"
NO_STRAIN: Final = 0
HIGHEST_LEVEL: Final = 3
#: A deferred job begins after a random time between the two, so that such jobs do not all begin at once.
_SHORTEST_DEFERRAL: Final = timedelta(minutes=5)
_LONGEST_DEFERRAL: Final = timedelta(minutes=15)
#: The lowest level that slows a lane down. Nothing slows the urgent lane down.
_SLOWED_FROM: Final = {Lane.BULK: 1, Lane.DEFAULT: 2}


class Importance(StrEnum):
    """How much a job type matters under strain."""

    NORMAL = "normal"
    #: Under strain, the HTTP API accepts its submissions for later.
    DEFERRABLE = "deferrable"
    #: Under strain, the HTTP API refuses its submissions.
    SHEDDABLE = "sheddable"


def sheds(importance: Importance, *, level: int) -> bool:
    return importance is Importance.SHEDDABLE and level > NO_STRAIN


def deferral(importance: Importance, *, level: int, draw: float) -> timedelta | None:
    """How much later the job of a submission may begin; None for at once. `draw` is from 0 to 1."""
    deferred = importance is Importance.DEFERRABLE and level > NO_STRAIN
    return _SHORTEST_DEFERRAL + draw * (_LONGEST_DEFERRAL - _SHORTEST_DEFERRAL) if deferred else None


def slowdown(lane: Lane, *, level: int) -> int:
    """How many times as long a batch of this lane keeps its worker; 1 for no slowdown. It doubles with each level."""
    first = _SLOWED_FROM.get(lane)
    return 1 if first is None else 2 ** max(level - first + 1, 0)


def level_of(value: Any) -> int:
    """Read the level from the setting. Raises `InvalidSettingError`."""
    try:
        level = option_values.whole(LEVEL_SETTING, value)
    except ValueError as error:
        raise InvalidSettingError(str(error)) from None
    if not NO_STRAIN <= level <= HIGHEST_LEVEL:
        raise InvalidSettingError(f"{LEVEL_SETTING} is {level}; it must lie within {NO_STRAIN} and {HIGHEST_LEVEL}")
    return level
