"""Checks of the age that wake reports of an open breaker: it is that of the table, and none of a closed or forced one.

All figures are those of the documentation, not those of the engine.
"""

from collections import defaultdict
from dataclasses import dataclass
from typing import Final

from tests.simulation.checks.forced_breakers import ForcedBreakerChecks, by_breaker
from tests.simulation.checks.table_watch import watch_items
from tests.simulation.checks.violation import require, text_of
from tests.simulation.world.cloudwatch import Line
from tests.simulation.world.dynamodb_table import Record
from tests.simulation.world.world import PAYMENTS, World
from tidemill.application.release import Released
from tidemill.names import Metric

_ITEM: Final = f"!breaker#{PAYMENTS}"
_RULE: Final = "wake reports how long a breaker is open"
_MINUTE_MS: Final = 60_000
#: A breaker that opens again so soon after it closed is in the same outage.
_SAME_OUTAGE_MS: Final = 300_000
#: A force acts within ten seconds, and the item that wake reads is at most two seconds old.
_KNOWN_AFTER_MS: Final = 12_000
#: Clocks differ, and wake reads the breaker before it writes the metric.
_DIFFERENCE_MS: Final = 30_000


@dataclass(slots=True)
class _Opened:
    from_ms: int
    #: When it opened for the first time in the same outage.
    outage_ms: int
    to_ms: float = float("inf")
    #: Since when jobs wait for it, without a gap that is longer than the way of a probe.
    line_ms: float = float("inf")
    #: Since when no job waits for it.
    empty_ms: float = 0


class BreakerAgeChecks:
    """Watches the jobs table and the metrics of one world, and runs at its end."""

    def __init__(self, world: World, forced: ForcedBreakerChecks) -> None:
        self._world = world
        self._forced = forced
        self._opened: list[_Opened] = []
        self._parked: set[str] = set()
        #: The ages in seconds that wake has written, by minute.
        self._ages: defaultdict[int, list[float]] = defaultdict(list)
        watch_items(world, self._changed)
        world.cloudwatch.line_watchers.append(self._line_written)

    def at_end(self) -> None:
        """The calls of one minute are the parts of one whole, so they are judged together."""
        if not self._forced.calm:
            return
        reports = [(at_ms, each) for at_ms, _, each in self._world.use_case_reports if isinstance(each, Released)]
        for minute in sorted({at_ms // _MINUTE_MS for at_ms, _ in reports}):
            if not any(each.left for at_ms, each in reports if at_ms // _MINUTE_MS == minute):
                self._the_age_is_true(minute * _MINUTE_MS, self._ages[minute])

    def _the_age_is_true(self, begin_ms: int, ages: list[float]) -> None:
        from_ms, to_ms = begin_ms - _MINUTE_MS, begin_ms + _MINUTE_MS
        near = [each for each in self._forced.forces if each.from_ms < to_ms and from_ms < each.to_ms + _KNOWN_AFTER_MS]
        if any(each.from_ms <= from_ms and to_ms <= each.to_ms for each in near):
            require(not ages, _RULE, f"{ages} s, and it is forced", "*")
        if near:
            return
        present = [each for each in self._opened if each.from_ms < to_ms and from_ms < each.to_ms]
        if not present:
            require(not ages, _RULE, f"{ages} s, and it is closed", "*")
        elif present[0].line_ms <= from_ms and to_ms <= min(present[0].to_ms, present[0].empty_ms):
            open_ms = begin_ms - present[0].outage_ms
            # Each call of the minute may be the one that has the line.
            late_ms = [age * 1_000 - open_ms for age in ages] or [float("-inf")]
            true = min(late_ms) >= -_DIFFERENCE_MS and max(late_ms) <= _MINUTE_MS + _DIFFERENCE_MS
            require(true, _RULE, f"{ages} s, and its outage began {open_ms} ms before the minute", "*")

    def _changed(self, key: str, record: Record) -> None:
        now_ms, after = self._world.scheduler.now_ms, record.after
        if by_breaker(after):
            self._parked.add(key)
        else:
            self._parked.discard(key)
        present = self._opened[-1] if self._opened and self._opened[-1].to_ms > now_ms else None
        if key == _ITEM:
            closed = text_of(after or {}, "circuit") in {"", "closed"}
            if closed and present:
                present.to_ms = now_ms
            elif not closed and present is None:
                last = self._opened[-1] if self._opened else None
                again = last is not None and now_ms - last.to_ms < _SAME_OUTAGE_MS
                self._opened.append(present := _Opened(now_ms, last.outage_ms if last and again else now_ms))
        if present and self._parked:
            if now_ms - present.empty_ms > _MINUTE_MS:
                present.line_ms = now_ms
            present.empty_ms = float("inf")
            present.line_ms = min(present.line_ms, now_ms)
        elif present and present.empty_ms == float("inf"):
            present.empty_ms = now_ms

    def _line_written(self, line: Line) -> None:
        if Metric.BREAKER_OPEN in line.metrics:
            self._ages[self._world.scheduler.now_ms // _MINUTE_MS].append(line.metrics[Metric.BREAKER_OPEN])
