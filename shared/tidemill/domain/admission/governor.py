"""The governor: it raises the level of strain while urgent jobs start late, and lowers it in steps. Pure.

The figures make it fast up and slow down: a level lasts six windows before it falls, so a load that is steady at
the edge changes it twice in 70 seconds at most.

The processes that count have clocks of their own. What falls is decided by counts, so clocks that differ by up to
30 seconds make a level last for so much longer or shorter, and no more.
"""

from datetime import datetime, timedelta
from typing import Any, Final

from msgspec import Struct

from tidemill.domain.admission.strain import HIGHEST_LEVEL, NO_STRAIN
from tidemill.domain.errors import InvalidSettingError
from tidemill.domain.records import replace
from tidemill.domain.time_constants import EPOCH

#: The setting of the runtime configuration that switches the governor off.
GOVERNOR_SETTING: Final = "governor"
#: Starts are counted in windows of this length.
WINDOW: Final = timedelta(seconds=10)
#: The level rises if so many starts of a window were late, and more than this share of those that were counted.
LATE_AT_LEAST: Final = 5
STRAINED_ABOVE: Final = 0.1
#: A minute with a smaller share of late starts is calm.
CALM_BELOW: Final = 0.02
#: The level falls by one after a calm minute. Another minute begins after one that was not calm.
FALLS_AFTER: Final = timedelta(seconds=60)
#: For so long after a fall, the starts that were counted before it tell the share of late ones.
KNOWN_FOR: Final = timedelta(minutes=10)
#: A level means nothing after so long without a start, a minute or a change: no process has governed it since.
EXPIRES_AFTER: Final = timedelta(minutes=5)


class Starts(Struct, frozen=True, kw_only=True):
    """Starts of urgent jobs that were counted, and the late ones among them."""

    late: int = 0
    total: int = 0

    @property
    def calm(self) -> bool:
        return self.late < self.total * CALM_BELOW or self.late == 0

    def __add__(self, other: "Starts") -> "Starts":
        return Starts(late=self.late + other.late, total=self.total + other.total)


class Governed(Struct, frozen=True, kw_only=True):
    """The level that the governor has set, and what it knows."""

    level: int = NO_STRAIN
    #: The time of the last change of the level.
    since: datetime = EPOCH
    #: The starts of the window that began at `window_from`.
    starts: Starts = Starts()
    window_from: datetime = EPOCH
    #: The starts that raised the level for the last time.
    raised_by: Starts = Starts()
    #: The starts of all processes since `minute_from`. Above level 0, the minutes follow each other.
    minute: Starts = Starts()
    minute_from: datetime = EPOCH
    #: The starts of all processes in a window, as counted in the minute that lowered the level last.
    usual: int = 0
    #: The number of changes of the level.
    version: int = 0


def window_is_over(seen: Governed, *, now: datetime) -> bool:
    # Clocks differ. A window that seems to begin later is the present one.
    return now - seen.window_from >= WINDOW


def in_force(seen: Governed, *, now: datetime) -> int:
    """The level, unless it has expired: for example, the governor was switched off meanwhile."""
    expired = now - max(seen.since, seen.window_from, seen.minute_from) >= EXPIRES_AFTER
    return NO_STRAIN if expired else seen.level


def next_level(seen: Governed, *, now: datetime) -> int:
    """The level that should be in force now: the one in force, or one beside it."""
    level = in_force(seen, now=now)
    # A process whose clock was far ahead wrote a time that lies far ahead: it must not keep the level until then.
    since = seen.since if seen.since - now < FALLS_AFTER else EPOCH
    total = seen.starts.total
    if level == NO_STRAIN and now - since < KNOWN_FOR:
        # Only processes that saw a late start report below level 1, so their share is larger than the true one.
        total = max(total, seen.usual)
    late = seen.starts.late >= LATE_AT_LEAST and seen.starts.late > total * STRAINED_ABOVE
    if late and not window_is_over(seen, now=now) and now - since >= WINDOW:
        return min(level + 1, HIGHEST_LEVEL)
    if now - max(since, seen.minute_from) >= FALLS_AFTER and seen.minute.calm:
        return max(level - 1, NO_STRAIN)
    return level


def changed(seen: Governed, level: int, *, now: datetime) -> Governed:
    """After a change of the level. The next change needs starts of its own."""
    after = replace(seen, level=level, since=now, version=seen.version + 1)
    if level > in_force(seen, now=now):
        after = replace(after, raised_by=seen.starts)
    else:
        lasted = max(now - seen.minute_from, FALLS_AFTER)
        after = replace(after, usual=round(seen.minute.total * (WINDOW / lasted)))
    return replace(after, starts=Starts(), window_from=now, minute=Starts(), minute_from=now)


def minute_begins(seen: Governed, *, now: datetime) -> bool:
    """Whether another minute begins, if the level does not change: the present one is over, or lies far ahead."""
    return seen.level > NO_STRAIN and abs(now - seen.minute_from) >= FALLS_AFTER


def switched_off(value: Any) -> bool:
    """Whether the setting switches the governor off. Raises `InvalidSettingError`."""
    if not isinstance(value, dict) or set(value) != {"off"} or not isinstance(value["off"], bool):
        raise InvalidSettingError(f'{GOVERNOR_SETTING} is {value!r}; use {{"off": true}} or {{"off": false}}')
    return bool(value["off"])
