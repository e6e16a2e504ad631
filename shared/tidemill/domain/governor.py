"""The governor: it raises the level of strain while urgent jobs start late, and lowers it in steps. Pure.

The figures make it fast up and slow down: a level lasts six windows before it falls, so a load that is steady at
the edge changes it twice in 70 seconds at most.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from tidemill.domain.errors import InvalidSettingError
from tidemill.domain.strain import HIGHEST_LEVEL, NO_STRAIN
from tidemill.domain.time_constants import EPOCH

#: The setting of the runtime configuration that switches the governor off.
GOVERNOR_SETTING: Final = "governor"
#: Starts are counted in windows of this length.
WINDOW: Final = timedelta(seconds=10)
#: The level rises if so many starts of a window were late, and more than this share of those that were counted.
LATE_AT_LEAST: Final = 5
STRAINED_ABOVE: Final = 0.1
#: A report with a smaller share of late starts is calm.
CALM_BELOW: Final = 0.02
#: The level falls by one after so long without a change and without a report that was not calm.
FALLS_AFTER: Final = timedelta(seconds=60)


@dataclass(frozen=True, slots=True, kw_only=True)
class Starts:
    """Starts of urgent jobs that one process has counted, and the late ones among them."""

    late: int = 0
    total: int = 0

    @property
    def calm(self) -> bool:
        return self.late < self.total * CALM_BELOW or self.late == 0

    def __add__(self, other: "Starts") -> "Starts":
        return Starts(late=self.late + other.late, total=self.total + other.total)


@dataclass(frozen=True, slots=True, kw_only=True)
class Governed:
    """The level that the governor has set, and what it knows."""

    level: int = NO_STRAIN
    #: Of the last change of the level.
    since: datetime = EPOCH
    #: The starts of the window that began at `window_from`.
    starts: Starts = Starts()
    window_from: datetime = EPOCH
    #: The starts that raised the level for the last time.
    raised_by: Starts = Starts()
    #: Of the last report that was not calm.
    troubled_at: datetime = EPOCH
    #: The number of changes of the level.
    version: int = 0


def window_is_over(seen: Governed, *, now: datetime) -> bool:
    # Clocks differ. A window that seems to begin later is the present one.
    return now - seen.window_from >= WINDOW


def next_level(seen: Governed, *, now: datetime) -> int:
    """The level that should be in force now: the present one, or one beside it."""
    late = seen.starts.late >= LATE_AT_LEAST and seen.starts.late > seen.starts.total * STRAINED_ABOVE
    if late and not window_is_over(seen, now=now) and now - seen.since >= WINDOW:
        return min(seen.level + 1, HIGHEST_LEVEL)
    if now - max(_known(seen.since, now), _known(seen.troubled_at, now)) >= FALLS_AFTER:
        return max(seen.level - 1, NO_STRAIN)
    return seen.level


def _known(at: datetime, now: datetime) -> datetime:
    """A process whose clock was far ahead wrote a time that lies far ahead: it must not keep the level until then."""
    return at if at - now < FALLS_AFTER else EPOCH


def switched_off(value: Any) -> bool:
    """Of the value of the setting. Raises `InvalidSettingError`."""
    if not isinstance(value, dict) or set(value) != {"off"} or not isinstance(value["off"], bool):
        raise InvalidSettingError(f'{GOVERNOR_SETTING} is {value!r}; use {{"off": true}} or {{"off": false}}')
    return bool(value["off"])
