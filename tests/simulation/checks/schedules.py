"""Checks of scheduled times: each is one job, and all those of one pause are the same job.

A call of `tick` is answered with its job, so the answers say which job each time has.
"""

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from tests.simulation.checks.table_watch import watch_items
from tests.simulation.checks.violation import Item, require, tenant_of, text_of
from tests.simulation.world.dynamodb_table import Record
from tests.simulation.world.world import World
from tidemill.domain.waiting.pauses import ACTS_WITHIN, CATCH_UP_TAG
from tidemill.names import SCHEDULE_TENANT, TICK_SCHEDULED_AT, TICK_TYPE

_ONE_JOB: Final = "each scheduled time is one job"
_PAUSED: Final = "a paused schedule makes one job"
_CONFIGURATION: Final = "!config"
_PREFIX: Final = "pauses."
_SECOND: Final = timedelta(seconds=1)
#: A function uses what it has read for 5 seconds. With slower changes, it may not know of one in time.
_PROMPT: Final = ACTS_WITHIN - 6 * _SECOND
#: A call that cannot read the configuration fails. One that is older acts by the last values, or by none.
_ACTS_UNREAD_AFTER: Final = timedelta(minutes=2)


@dataclass(slots=True)
class _Paused:
    """From when and until when the table held a pause, by its operator's clock and at most."""

    target: str
    since: datetime
    until: datetime | None
    #: The earliest value of `until`: an operator who resumes does it a little before the table has it.
    sure_until: datetime | None

    def holds(self, at: datetime) -> bool:
        return self.since + ACTS_WITHIN <= at and (self.until is None or at < self.until)


class ScheduleChecks:
    """Watches the answers of `tick` in one world."""

    def __init__(self, world: World) -> None:
        self._world = world
        #: By type and scheduled time, the ids of the jobs that the calls were answered with.
        self._answered: dict[tuple[str, str], set[str]] = defaultdict(set)
        #: By id, as it was inserted.
        self._inserted: dict[str, Item] = {}
        self._pauses: list[_Paused] = []
        #: Names of the pauses that the table holds.
        self._standing: dict[str, _Paused] = {}
        #: Whether a change of the configuration took so long that a function may have missed it.
        self._slow = False
        #: Scheduled times of which a call may have acted without a read.
        self._unsure: set[tuple[str, str]] = set()
        watch_items(world, self._changed)
        world.async_invocations["tick"].answer_watchers.append(self._answer)

    def at_end(self, scheduled: Sequence[tuple[str, str]]) -> None:
        """`scheduled` has type and time of each call that the scheduler began."""
        discarded = {_time_of(event) for event in self._world.async_invocations["tick"].discarded}
        for time in scheduled:
            require(time in self._answered or time in discarded, _ONE_JOB, f"{time} has none", f"{SCHEDULE_TENANT}#")
        answered = set().union(*self._answered.values())
        # A call that did not know of a pause may have failed after its insert, and the next one knew.
        unsure = bool(discarded) or self._slow or bool(self._unsure)
        for id_ in self._inserted:
            require(id_ in answered or unsure, _ONE_JOB, "it has no scheduled time", f"{SCHEDULE_TENANT}#{id_}")

    def _changed(self, key: str, record: Record) -> None:
        if key == _CONFIGURATION:
            self._pauses_changed(record.after or {})
        elif record.before is None and record.after and tenant_of(key) == SCHEDULE_TENANT:
            id_ = key.rpartition("#")[2]
            require(id_ not in self._inserted, _ONE_JOB, "it was submitted twice", key)
            self._inserted[id_] = record.after

    def _pauses_changed(self, item: Item) -> None:
        now = self._now()
        settings = json.loads(text_of(item, "document") or "{}").get("settings", {})
        held = {name.removeprefix(_PREFIX): entry for name, entry in settings.items() if name.startswith(_PREFIX)}
        for target, paused in list(self._standing.items()):
            if target not in held or datetime.fromisoformat(held[target]["at"]) != paused.since:
                replaced = target in held
                ended = datetime.fromisoformat(held[target]["at"]) if replaced else now
                paused.until = min(paused.until or now + ACTS_WITHIN, now + ACTS_WITHIN)
                paused.sure_until = min(paused.until, ended + (ACTS_WITHIN if replaced else ACTS_WITHIN - _PROMPT))
                del self._standing[target]
        for target, entry in held.items():
            if target not in self._standing:
                since = datetime.fromisoformat(entry["at"])
                self._slow = self._slow or now - since > _PROMPT
                until = datetime.fromisoformat(entry["until"]) if "until" in entry else None
                self._standing[target] = paused = _Paused(target, since, until, until)
                self._pauses.append(paused)

    def _answer(self, event: Any, answer: Any) -> None:
        time, id_ = _time_of(event), answer["id"]
        self._answered[time].add(id_)
        at = datetime.fromisoformat(time[1])
        if self._unread() and self._now() - at >= _ACTS_UNREAD_AFTER:
            self._unsure.add(time)
        if self._slow or time in self._unsure:
            return
        key = f"{SCHEDULE_TENANT}#{id_}"
        require(len(self._answered[time]) == 1, _ONE_JOB, f"{time} has another job, too", key)
        job = self._inserted[id_]
        names = {f"schedule={time[0]}", f"type={time[0]}", f"lane={text_of(job, 'lane')}", f"tenant={SCHEDULE_TENANT}"}
        # The end of a pause in the table is a little later than by the clock of its operator.
        sure = [one.target for one in self._pauses if one.target in names and one.holds(at) and one.holds(at + _PROMPT)]
        perhaps = any(one.target in names and one.holds(at) for one in self._pauses)
        makes_up = "tags" in job and {"S": CATCH_UP_TAG} in job["tags"]["L"]
        require(makes_up or not sure, _PAUSED, f"{time[1]} has a job of its own though {sure} was paused", key)
        require(not makes_up or perhaps, _PAUSED, f"{time[1]} has no job of its own, and no pause", key)
        if makes_up:
            self._require_one_job([one for one in self._pauses if one.target in names], time, key)

    def _require_one_job(self, pauses: Sequence[_Paused], time: tuple[str, str], key: str) -> None:
        """Require one job for all times that the pauses hold without a gap up to this time."""
        for other, ids in self._answered.items():
            first, last = sorted(datetime.fromisoformat(at) for at in (time[1], other[1]))
            if other[0] == time[0] and other not in self._unsure and _without_gap(pauses, first, last):
                require(ids == self._answered[time], _PAUSED, f"{time[1]} and {other[1]} have two", key)

    def _unread(self) -> bool:
        """Whether a tick could not read something: perhaps the configuration."""
        return any(name.startswith("tick") and times for name, times in self._world.sdk.gave_up.items())

    def _now(self) -> datetime:
        return datetime.fromisoformat("1970-01-01T00:00:00+00:00") + timedelta(
            milliseconds=self._world.scheduler.now_ms
        )


def _without_gap(pauses: Sequence[_Paused], first: datetime, last: datetime) -> bool:
    """Whether pauses surely hold all times from the first one to the last one."""
    at = first
    while at <= last:
        holding = [one.sure_until for one in pauses if one.since + ACTS_WITHIN <= at]
        if None in holding:
            return True
        further = max((until for until in holding if until and until > at), default=None)
        if further is None:
            return False
        at = further
    return True


def _time_of(event: Any) -> tuple[str, str]:
    return event[TICK_TYPE], event[TICK_SCHEDULED_AT]


__all__ = ["ScheduleChecks"]
