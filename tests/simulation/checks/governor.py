"""Checks of the governor: how its level may change, that calm lowers it to nothing, and what it costs."""

from typing import Final

from tests.simulation.checks.table_watch import watch_items
from tests.simulation.checks.violation import number_of, require
from tests.simulation.world.dynamodb_table import Record
from tests.simulation.world.faults import Fault
from tests.simulation.world.lambda_environments import FAR_OFF_MS, LARGEST_SKEW_MS
from tests.simulation.world.world import World

_ITEM: Final = "!strain"
#: The figures are those of the guide, not those of the engine.
_HIGHEST: Final = 3
_LATE_AT_LEAST: Final = 5
#: The level falls after a minute in which fewer than one start of so many was late.
_CALM_PART: Final = 50
_RISES_AFTER_MS: Final = 10_000
_FALLS_AFTER_MS: Final = 60_000
#: For so long after a fall, the starts of the minute before it tell the share of the late ones.
_KNOWN_MS: Final = 600_000
_EXPIRES_AFTER_MS: Final = 300_000
#: Without starts, a call of wake ends the minute that had late ones, and a later one lowers the level. One of them may
#: fail.
_WAKE_WITHIN_MS: Final = 270_000
#: A process lowers the level by what it read so long before, at most: its write may be slow, or tried again.
_READ_BEFORE_MS: Final = 30_000


class GovernorChecks:
    """Watches the item of the governor in one world."""

    def __init__(self, world: World) -> None:
        self._world = world
        #: (milliseconds, level) of each change.
        self.changes: list[tuple[int, int]] = [(0, 0)]
        #: (late, total) of each window since the last change.
        self._seen: set[tuple[int, int]] = set()
        #: The times of the last report of late starts, of the last write, and of the end of the faults.
        self._troubled_ms = self._written_ms = self._quiet_ms = 0
        #: When a level may have expired, and when it was written again.
        self._expiries: list[tuple[int, int]] = []
        #: When the minute was calm last.
        self._calm_ms = 0
        watch_items(world, self._changed)

    def _changed(self, key: str, record: Record) -> None:
        if key != _ITEM or record.after is None:
            return
        now_ms = self._world.scheduler.now_ms
        self._expiries.append((self._expires_ms(), now_ms))
        idle_ms, self._written_ms = now_ms - self._written_ms, now_ms
        self._seen.add((number_of(record.before, "late"), number_of(record.before, "total")))
        late, total = number_of(record.before, "minute_late"), number_of(record.before, "minute_total")
        if late == 0 or late * _CALM_PART < total:
            self._calm_ms = now_ms
        before, after = number_of(record.before, "level"), number_of(record.after, "level")
        if before == after:
            self._counted(record)
            return
        since_ms = now_ms - self.changes[-1][0]
        # A level that no process governed has expired.
        expired = idle_ms >= _EXPIRES_AFTER_MS - self._skews_ms
        fits = abs(after - before) == 1 or (expired and after <= 1)
        self._require(fits and 0 <= after <= _HIGHEST, f"from {before} to {after} after {idle_ms} idle ms")
        if after > before:
            # A process whose clock is ahead may have begun another window after this one was read.
            late, total = number_of(record.after, "raised_late"), number_of(record.after, "raised_total")
            self._require((late, total) in self._seen, f"raised by {late} late of {total} that were not counted")
            self._require(late >= _LATE_AT_LEAST and late * 10 > total, f"raised by {late} late of {total}")
            usual = number_of(record.before, "usual")
            known = not before and since_ms < _KNOWN_MS - self._skews_ms
            self._require(not known or late * 10 > usual, f"raised by {late} late of {usual} starts that are usual")
            first = len(self.changes) == 1
            self._require(first or since_ms >= _RISES_AFTER_MS - self._skews_ms, f"raised {since_ms} ms after a change")
        else:
            self._require(since_ms >= _FALLS_AFTER_MS - self._skews_ms, f"lowered {since_ms} ms after a change")
            calm = now_ms - self._calm_ms <= _READ_BEFORE_MS
            self._require(calm or expired, f"lowered after a minute with {late} late of {total}")
            usual = number_of(record.after, "usual")
            self._require(usual * 6 <= total + 6, f"{usual} starts of a window are usual, after a minute with {total}")
        self.changes.append((now_ms, after))
        self._seen.clear()

    def _counted(self, record: Record) -> None:
        """A report, or the beginning of a minute."""
        before, after = record.before, record.after
        if number_of(before, "minute_from") != number_of(after, "minute_from"):
            fits = number_of(after, "minute_total") == 0 and number_of(after, "version") > 0
            self._require(fits, f"a minute began with {number_of(after, 'minute_total')} starts")
            return
        late, total = (number_of(after, name) - number_of(before, name) for name in ("minute_late", "minute_total"))
        if late:
            self._troubled_ms = self._written_ms
        same_window = number_of(before, "window_from") == number_of(after, "window_from")
        window = number_of(before, "total") if same_window else 0
        counted = number_of(after, "total") - window
        self._require(total == counted and 0 <= late <= total, f"a minute counted {total} of {counted} starts")

    def levels(self, from_ms: int, to_ms: int) -> set[int]:
        """Those that the table had within that time, and none if its level may have expired."""
        ends = [at_ms for at_ms, _ in self.changes[1:]] + [to_ms + 1]
        expiries = [*self._expiries, (self._expires_ms(), to_ms + 1)]
        expired = any(at_ms <= to_ms and from_ms <= written_ms > at_ms for at_ms, written_ms in expiries)
        return {
            level
            for (begins_ms, level), ends_ms in zip(self.changes, ends, strict=True)
            if begins_ms <= to_ms and ends_ms >= from_ms
        } | ({0} if expired else set())

    def _expires_ms(self) -> int:
        """At the earliest, unless it is written until then. A report of starts does not begin another window."""
        return self._written_ms - _RISES_AFTER_MS + _EXPIRES_AFTER_MS - self._skews_ms

    def quiet_begins(self) -> None:
        self._quiet_ms = self._world.scheduler.now_ms

    def at_end(self) -> None:
        """Some time after the last fault. Raises `Violation`."""
        changed_ms, level = self.changes[-1]
        calm_ms = self._world.scheduler.now_ms - max(changed_ms, self._troubled_ms, self._quiet_ms)
        falls = calm_ms <= _FALLS_AFTER_MS + _WAKE_WITHIN_MS + self._skews_ms
        self._require(level == 0 or falls, f"the level is {level} after {calm_ms} calm ms")

    def _require(self, holds: bool, what: str) -> None:
        require(holds, "the governor's level rises under strain alone, and falls in steps", what, "*")

    @property
    def _skews_ms(self) -> int:
        """The clocks of the two processes that made two changes may differ by so much."""
        return 2 * (FAR_OFF_MS if self._world.faults.counted[Fault.CLOCK_FAR_OFF] else LARGEST_SKEW_MS)


__all__ = ["GovernorChecks"]
