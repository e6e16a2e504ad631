"""Checks of wake and of owed work: what is left, how early, how late, and when it is tried again.

The figures are not the constants of the engine.
"""

from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from tests.simulation.checks.violation import Item, number_of, require, state_of, text_of, waits_alone
from tests.simulation.world.faults import Fault
from tests.simulation.world.lambda_environments import FAR_OFF_MS, LARGEST_SKEW_MS, RAISED
from tests.simulation.world.trace import Change
from tests.simulation.world.world import LONGEST_INDEX_LAG_MS, World
from tidemill.application.dispatch.owed import Kind, OwedResult
from tidemill.application.waiting.release import Released
from tidemill.application.waiting.wake import Woken
from tidemill.domain.states import State
from tidemill.dynamodb.dispatch.owed_items import owed_key
from tidemill.names import ATTENTION_SORT_KEY, JOB_KEY, OWED_PREFIX

_MINUTE_MS: Final = 60_000
#: The pause after a failure doubles from a minute to a quarter of an hour.
_LONGEST_PAUSE_MS: Final = 15 * _MINUTE_MS
#: Work that fails for longer is reported.
_PATIENCE_MS: Final = 5 * _MINUTE_MS
_WAKE_MS: Final = 2 * _MINUTE_MS


class WakeReportChecks:
    """Runs at the end of one world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._quiet_from_ms = 0

    def quiet_begins(self) -> None:
        self._quiet_from_ms = self._world.scheduler.now_ms

    def at_end(self) -> None:
        """Raises `Violation`."""
        self.nothing_is_left_in_calm()
        self.wake_reports_lanes_and_lead()
        for change in self._world.trace.changes:
            if change.key.startswith(OWED_PREFIX) and change.before and change.after:
                self.owed_work_is_tried_less_and_less_often(change, change.before, change.after)
        self.what_fails_for_long_is_reported()

    def nothing_is_left_in_calm(self) -> None:
        """Without faults a call of wake comes to the end of its part."""
        for at_ms, by, report in self._world.use_case_reports:
            if at_ms < self._quiet_from_ms + _WAKE_MS:
                continue
            left = False
            if isinstance(report, Woken | OwedResult):
                left = not report.finished
            elif isinstance(report, Released):
                left = report.left > 0
            require(not left, "wake does all of its part", f"{by}: {report}", "*")

    def wake_reports_lanes_and_lead(self) -> None:
        """The lead of the earliest job that a call has woken, counted from the beginning of the call."""
        if any(self._world.faults.counted[fault] for fault in (Fault.ANSWER_LOST, Fault.UNANSWERED)):
            return  # It takes a repeated write for its own.
        all_woken = [change for change in self._world.trace.changes if _was_woken(change)]
        for began_ms, ended_ms, by, report in self._calls_of_wake():
            woken = [change for change in all_woken if change.by == by and began_ms < change.at_ms <= ended_ms]
            lanes = Counter(text_of(change.after, "lane") for change in woken)
            what = f"{by} woke {dict(lanes)}, and reported {dict(report.jobs)}"
            require(lanes <= Counter(report.jobs), "reports count what was done", what, "*")
            others = sum(began_ms - LONGEST_INDEX_LAG_MS <= change.at_ms <= ended_ms for change in all_woken)
            # A wake that finds the job queued at the same generation takes that for its own write.
            require(sum(report.jobs.values()) <= others, "reports count what was done", what, "*")
            if not woken or report.ahead is None or lanes != Counter(report.jobs):
                require(report.ahead is not None or not woken, "wake reports its lead", f"{by}: {report}", "*")
                continue
            lead_ms = report.ahead.total_seconds() * 1000
            read_ms = min(number_of(change.after, "due") for change in woken) - lead_ms
            earliest_ms, latest_ms = began_ms - self._skew_ms, min(change.at_ms for change in woken) + self._skew_ms
            fits = earliest_ms <= read_ms <= latest_ms
            require(fits, "wake reports its lead", f"{by} reported {report.ahead}", "*")

    def _calls_of_wake(self) -> Iterator[tuple[int, int, str, Woken]]:
        """When each completed call began to wake jobs, when it ended, its process and its report."""
        raised = {who for _, who, what in self._world.trace.lines if what.startswith(RAISED)}
        unreliable = raised | self._world.scheduler.interrupted
        released_ms: dict[str, int] = {}
        for at_ms, by, report in self._world.use_case_reports:
            if isinstance(report, Released):
                released_ms[by] = at_ms
            elif isinstance(report, Woken) and by not in unreliable:
                yield released_ms.get(by, 0), at_ms, by, report

    def owed_work_is_tried_less_and_less_often(self, change: Change, before: Item, after: Item) -> None:
        """One more try moves the next one away; another failure of publish leaves it where it is."""
        tries, pause_ms = number_of(before, "tries"), number_of(after, ATTENTION_SORT_KEY) - change.at_ms
        if number_of(after, "tries") == tries:
            moved = before[ATTENTION_SORT_KEY] != after[ATTENTION_SORT_KEY] or before["since"] != after["since"]
            require(not moved, "owed work keeps its first failure", f"{before} became {after}", change.key)
            return
        wanted_ms = min(_MINUTE_MS * 2**tries, _LONGEST_PAUSE_MS)
        # The write may take a while, with its retries.
        fits = wanted_ms - _MINUTE_MS / 2 - self._skew_ms <= pause_ms <= wanted_ms + self._skew_ms
        fits = fits and number_of(after, "tries") == tries + 1
        what = f"after try {tries} it waits for {pause_ms} ms, not {wanted_ms} ms"
        require(fits, "owed work is tried less and less often", what, change.key)

    def what_fails_for_long_is_reported(self) -> None:
        """Every try that fails five minutes after the first failure or later, and no earlier one."""
        check, reported = "owed work that fails for long is reported", Counter[tuple[str, str]]()
        for at_ms, by, report in self._world.use_case_reports:
            for owed in report.overdue if isinstance(report, OwedResult) else ():
                late_ms = at_ms - owed.since.timestamp() * 1000
                require(late_ms >= _PATIENCE_MS - 2 * self._skew_ms, check, f"{by}, after {late_ms} ms", "*")
                reported[by, _key(owed)] += 1
        raised = {who for _, who, what in self._world.trace.lines if what.startswith(RAISED)}
        tried = Counter[tuple[str, str]]()
        for change in self._world.trace.changes:
            before, after = change.before or {}, change.after or {}
            if not change.key.startswith(OWED_PREFIX) or number_of(after, "tries") <= number_of(before, "tries"):
                continue
            # The message of a job that runs is not needed yet. A look at such a job has not failed.
            waits = Kind.DISPATCH in change.key and before.get("error") == after.get("error")
            late_ms = change.at_ms - number_of(before, "since")
            if late_ms > _PATIENCE_MS + _MINUTE_MS / 2 + 2 * self._skew_ms and not waits:
                tried[change.by, change.key] += 1
        for (by, key), count in tried.items():
            known = by not in raised and by not in self._world.scheduler.interrupted
            require(not known or reported[by, key] >= count, check, f"{by} reported {reported[by, key]} times", key)

    @property
    def _skew_ms(self) -> int:
        return FAR_OFF_MS if self._world.faults.counted[Fault.CLOCK_FAR_OFF] else LARGEST_SKEW_MS


def _was_woken(change: Change) -> bool:
    nudged = number_of(change.after, "nudges") > number_of(change.before, "nudges")
    moved = bool(change.before and change.after and "state" in change.after)
    if nudged or not moved or state_of(change.after) is not State.QUEUED:
        return False
    signalled = (change.before or {}).get("signals") != (change.after or {}).get("signals")
    return state_of(change.before) is State.SCHEDULED or (waits_alone(change.before) and not signalled)


def _key(owed: Any) -> str:
    return str(owed_key(owed.work)[JOB_KEY]["S"])


__all__ = ["WakeReportChecks"]
