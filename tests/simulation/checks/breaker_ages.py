"""Checks of the age that wake reports of an open breaker: it is that of the table while a job waits or probes.

It reports none of a closed or forced breaker, and none while no job needs the downstream.

All figures are those of the documentation, not those of the engine.
"""

from collections import defaultdict
from dataclasses import dataclass
from typing import Final

from tests.simulation.checks.forced_breakers import ForcedBreakerChecks, by_breaker
from tests.simulation.checks.table_watch import watch_items
from tests.simulation.checks.violation import number_of, require, text_of
from tests.simulation.world.cloudwatch import Line
from tests.simulation.world.dynamodb_table import Record
from tests.simulation.world.world import PAYMENTS, World
from tidemill.application.waiting.release import Released
from tidemill.metrics import Metric

_ITEM: Final = f"!breaker#{PAYMENTS}"
_RULE: Final = "wake reports how long a breaker is open"
_MINUTE_MS: Final = 60_000
#: A breaker that opens again so soon after it closed is in the same outage.
_SAME_OUTAGE_MS: Final = 300_000
#: A force acts within ten seconds, and the item that wake reads is at most two seconds old.
_KNOWN_AFTER_MS: Final = 12_000
#: The same, and a call of wake.
_NOT_WRITTEN_AFTER_MS: Final = 22_000
#: A probe that fails is parked by the next write of its run.
_GAP_MS: Final = 5_000
#: Clocks differ, and wake reads the breaker before it writes the metric.
_DIFFERENCE_MS: Final = 30_000


@dataclass(slots=True)
class _Opened:
    from_ms: int
    #: When its outage began, at the earliest and at the latest: at the end of the five minutes, clocks decide.
    outage_ms: int
    outage_at_latest_ms: int
    to_ms: float = float("inf")


@dataclass(slots=True)
class _Needed:
    """A time in which a job waits for the breaker, or is its probe: it is elected, or calls the downstream."""

    from_ms: int
    to_ms: float


class BreakerAgeChecks:
    """Watches the jobs table and the metrics of one world, and runs at its end."""

    def __init__(self, world: World, forced: ForcedBreakerChecks) -> None:
        self._world = world
        self._forced = forced
        self._opened: list[_Opened] = []
        self._needed: list[_Needed] = []
        self._parked: set[str] = set()
        self._probe_until_ms = 0
        #: The ages in seconds that wake has written, by minute, and the times of all.
        self._ages: defaultdict[int, list[float]] = defaultdict(list)
        self._written_ms: list[int] = []
        watch_items(world, self._changed)
        world.cloudwatch.line_watchers.append(self._line_written)

    def at_end(self) -> None:
        """The calls of one minute are the parts of one whole, so they are judged together."""
        if not self._forced.calm:
            return
        for at_ms in self._written_ms:
            forced = [each for each in self._forced.forces if each.acts(at_ms, after_ms=_NOT_WRITTEN_AFTER_MS)]
            late_ms = [at_ms - each.from_ms for each in forced]
            require(not forced, _RULE, f"an age, {late_ms} ms after it was forced", "*")
        reports = [(at_ms, each) for at_ms, _, each in self._world.use_case_reports if isinstance(each, Released)]
        for minute in sorted({at_ms // _MINUTE_MS for at_ms, _ in reports}):
            if not any(each.left for at_ms, each in reports if at_ms // _MINUTE_MS == minute):
                self._the_age_is_true(minute * _MINUTE_MS, self._ages[minute])

    def _the_age_is_true(self, begin_ms: int, ages: list[float]) -> None:
        from_ms, to_ms = begin_ms - _MINUTE_MS, begin_ms + _MINUTE_MS
        near = [each for each in self._forced.forces if each.from_ms < to_ms and from_ms < each.to_ms + _KNOWN_AFTER_MS]
        if near:
            return
        opened = [each for each in self._opened if each.from_ms < to_ms and from_ms < each.to_ms]
        needed = [each for each in self._needed if each.from_ms < to_ms and from_ms < each.to_ms + _DIFFERENCE_MS]
        require(bool(opened) or not ages, _RULE, f"{ages} s, and it is closed", "*")
        require(bool(needed) or not ages, _RULE, f"{ages} s, and no job waits for it", "*")
        for age in ages:
            # Each call of the minute may be the one that has the line.
            oldest_ms = to_ms + _DIFFERENCE_MS - min(each.outage_ms for each in opened)
            youngest_ms = begin_ms - _DIFFERENCE_MS - max(each.outage_at_latest_ms for each in opened)
            true = youngest_ms <= age * 1_000 <= oldest_ms
            require(true, _RULE, f"{age} s, which is not within {youngest_ms} and {oldest_ms} ms", "*")
        stays_open = any(each.from_ms <= from_ms and to_ms <= each.to_ms for each in opened)
        if stays_open and any(each.from_ms <= from_ms and to_ms + _DIFFERENCE_MS <= each.to_ms for each in needed):
            require(bool(ages), _RULE, "none, and a job waits for it or probes", "*")

    def _changed(self, key: str, record: Record) -> None:
        now_ms, after = self._world.scheduler.now_ms, record.after
        if by_breaker(after):
            self._parked.add(key)
        else:
            self._parked.discard(key)
        if key == _ITEM:
            self._moved(closed=text_of(after or {}, "circuit") in {"", "closed"})
            self._probe_until_ms = number_of(after, "probe_until") if text_of(after or {}, "probe") else 0
        last = self._needed[-1] if self._needed else None
        until_ms = float("inf") if self._parked else self._probe_until_ms
        if until_ms <= now_ms:
            if last:
                last.to_ms = min(last.to_ms, now_ms)
        elif last and now_ms <= last.to_ms + _GAP_MS:
            last.to_ms = until_ms
        else:
            self._needed.append(_Needed(now_ms, until_ms))

    def _moved(self, *, closed: bool) -> None:
        now_ms, last = self._world.scheduler.now_ms, self._opened[-1] if self._opened else None
        is_open = last is not None and last.to_ms > now_ms
        if last and closed and is_open:
            last.to_ms = now_ms
        elif not closed and not is_open:
            closed_for_ms = now_ms - last.to_ms if last else float("inf")
            again = last is not None and closed_for_ms < _SAME_OUTAGE_MS + _DIFFERENCE_MS
            surely = last is not None and closed_for_ms < _SAME_OUTAGE_MS - _DIFFERENCE_MS
            self._opened.append(
                _Opened(
                    now_ms,
                    last.outage_ms if last and again else now_ms,
                    last.outage_at_latest_ms if last and surely else now_ms,
                )
            )

    def _line_written(self, line: Line) -> None:
        if Metric.BREAKER_OPEN in line.metrics:
            self._written_ms.append(self._world.scheduler.now_ms)
            self._ages[self._world.scheduler.now_ms // _MINUTE_MS].append(line.metrics[Metric.BREAKER_OPEN])
