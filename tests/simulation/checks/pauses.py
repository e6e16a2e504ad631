"""Checks of pauses: nothing of what is paused begins, nothing is sent, nothing is lost, and all moves on afterwards."""

import json
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from tests.simulation.checks.table_watch import watch_items
from tests.simulation.checks.violation import (
    Item,
    group_of,
    map_of,
    number_of,
    require,
    require_in_task,
    run_ended,
    state_of,
    tenant_of,
    text_of,
    unused_signals,
)
from tests.simulation.world.code_versions import PRESENT
from tests.simulation.world.dynamodb_table import Record
from tests.simulation.world.faults import Fault
from tests.simulation.world.lambda_environments import FAR_OFF_MS, LARGEST_SKEW_MS
from tests.simulation.world.sdk import LONGEST_OUTAGE_MS
from tests.simulation.world.sqs_queue import Message, Queue
from tests.simulation.world.world import LONGEST_INDEX_LAG_MS, World
from tidemill.domain.states import State
from tidemill.domain.waiting.pauses import CATCH_UP_TAG
from tidemill.domain.waiting.waiting import Line
from tidemill.names import SCHEDULE_TENANT

#: A change acts within this time.
_ACTS_WITHIN_MS: Final = 10_000
#: Wake, late and more than once, with a lag of the index, and a time of the rate. For jobs that are late by half an
#: hour, the schedules of a seed call wake each half hour.
_MOVES_ON_WITHIN_MS: Final = 50 * 60_000 + LONGEST_INDEX_LAG_MS
_CONFIGURATION: Final = "!config"
_PREFIX: Final = "pauses."
_MILLISECOND: Final = timedelta(milliseconds=1)
_EPOCH: Final = datetime.fromisoformat("1970-01-01T00:00:00+00:00")
_NOT_SENT: Final = "a paused job is not sent"


@dataclass(slots=True)
class _Stood:
    """A time for which the table held a pause, in milliseconds. It counts until `until_ms` if that is earlier."""

    target: str
    from_ms: int
    until_ms: int | None
    to_ms: int | None = None

    def stands(self, from_ms: int, to_ms: int, skew_ms: int) -> bool:
        """By every clock, for all of that time."""
        ends = [ms for ms in (self.to_ms, None if self.until_ms is None else self.until_ms - skew_ms) if ms is not None]
        return self.from_ms <= from_ms and all(to_ms < ms for ms in ends)

    def ended_ms(self) -> int | None:
        ends = [ms for ms in (self.to_ms, self.until_ms) if ms is not None]
        return min(ends) if ends else None


class PauseChecks:
    """Watches the jobs table and the queues of one world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._pauses: list[_Stood] = []
        #: By key, when the job was parked by a pause, in milliseconds.
        self._parked_ms: dict[str, int] = {}
        #: The last write of the table before the faults stopped. 0 in a world without faults.
        self._calm_since_ms = 0
        watch_items(world, self._changed)
        for queue in world.lanes.values():
            queue.send_watchers.append(partial(self._sent, queue))

    def at_end(self) -> None:
        self.no_paused_job_begins()
        for key in self._parked_ms:
            require(False, "no paused job stands still", "it is still parked at the end", key)

    def _changed(self, key: str, record: Record) -> None:
        if not self._world.faults.stopped and any(self._world.faults.rates.values()):
            self._calm_since_ms = self._now_ms
        if key == _CONFIGURATION:
            self.changes_follow_each_other(record)
            self._pauses_changed(record.after or {})
        before, after = record.before, record.after
        if not before or not after or "state" not in after or before["created_at"] != after["created_at"]:
            if after is None:
                self._parked_ms.pop(key, None)
            return
        self.paused_jobs_use_no_attempt(key, before, after)
        self.paused_jobs_move_on(key, before, after)

    def changes_follow_each_other(self, record: Record) -> None:
        """No operator overwrites the change of another. The history has each change."""
        step = number_of(record.after, "version") - number_of(record.before, "version")
        require(step == 1, "no operator overwrites another", f"the version moved by {step}", _CONFIGURATION)

    def _pauses_changed(self, item: Item) -> None:
        settings = json.loads(text_of(item, "document") or "{}").get("settings", {})
        now = {name.removeprefix(_PREFIX): entry for name, entry in settings.items() if name.startswith(_PREFIX)}
        for stood in self._pauses:
            if stood.to_ms is None:
                stood.to_ms = self._now_ms
        for target, entry in now.items():
            until_ms = _ms(entry["until"]) if "until" in entry else None
            # The same pause stands on.
            earlier = [one for one in self._pauses if one.target == target and one.to_ms == self._now_ms]
            same = next((one for one in earlier if one.until_ms == until_ms), None)
            if same:
                same.to_ms = None
            else:
                self._pauses.append(_Stood(target, self._now_ms, until_ms))

    def no_paused_job_begins(self) -> None:
        """A run whose claim came long enough after the begin of a pause does not start its handler while it stands."""
        for run in self._world.runs:
            shown = {"lane": {"S": run.lane}, "type": {"S": run.kind}}
            group = {} if run.group is None else {"group": {"S": run.group}}
            names = _names(run.key, shown | group) | _limit_names(run.kind, run.limit_key, run.tenant)
            stood = self._standing(names, run.claimed_ms - _ACTS_WITHIN_MS - self._skew_ms, run.began_ms)
            excused = stood is None or self._unread(run.by)
            what = f"it ran though {stood.target if stood else ''} was paused"
            require(excused, "no paused job begins", what, run.key)

    def paused_jobs_use_no_attempt(self, key: str, before: Item, after: Item) -> None:
        if state_of(after) is not State.PARKED is not state_of(before) or _cause(after) != "pause":
            return
        check = "a paused job uses no attempt"
        gave_back = 1 if run_ended(before, after) else 0
        same = number_of(after, "attempt") == number_of(before, "attempt") - gave_back
        same = (
            same
            and number_of(after, "hops") == number_of(before, "hops")
            and before.get("errors") == after.get("errors")
        )
        require(same, check, f"attempt {number_of(before, 'attempt')} -> {number_of(after, 'attempt')}", key)
        known = any(_name_of_line(stood.target) == after["wait"]["M"]["key"]["S"] for stood in self._pauses)
        require(known, "a job is parked for a pause that exists", after["wait"]["M"]["key"]["S"], key)

    def paused_jobs_move_on(self, key: str, before: Item, after: Item) -> None:
        if state_of(after) is State.PARKED and _cause(after) == "pause":
            self._parked_ms[key] = self._now_ms
            return
        if state_of(before) is not State.PARKED or key not in self._parked_ms:
            return
        parked_ms = self._parked_ms.pop(key)
        if state_of(after) is not State.QUEUED:
            return
        due_ms = number_of(after, "due")
        wait = before["wait"]["M"]
        not_before_ms = int(wait["not_before"]["N"]) if "not_before" in wait else 0
        awaited = map_of(before, "awaited")
        # The signal that it waited for came during the pause.
        came = number_of(awaited, "until") == not_before_ms and text_of(awaited, "name") in unused_signals(before)
        check = "a released job keeps its own time"
        require(came or due_ms >= not_before_ms, check, f"due {due_ms}, not {not_before_ms}", key)
        self.paused_jobs_stay_parked(key, before, after)
        ended = [
            stood.ended_ms() or 0
            for stood in self._pauses
            if _name_of_line(stood.target) == wait["key"]["S"]
            and (stood.ended_ms() or self._now_ms + 1) <= self._now_ms
        ]
        # After a rollback, its line waits for the version that can read the document.
        unread = number_of(before, "schema") > PRESENT.document_schema
        if not ended or unread:
            return
        late_ms = self._now_ms - max(parked_ms, self._calm_since_ms, self._world.faults.stopped_ms, *ended)
        outages_ms = self._world.faults.counted[Fault.SERVICE_OUTAGE] * LONGEST_OUTAGE_MS
        soon = late_ms <= _MOVES_ON_WITHIN_MS + outages_ms + self._skew_ms
        require(soon, "no paused job stands still", f"released {late_ms // 1000} s after its pause", key)

    def paused_jobs_stay_parked(self, key: str, before: Item, _after: Item) -> None:
        """While a pause stands, only reconcile releases its jobs, after a day. Publish parks them again."""
        task, line = self._world.scheduler.current, before["wait"]["M"]["key"]["S"]
        if task is None or not task.process.name.startswith("wake") or self._unread(task.process.name):
            return
        since_ms = self._now_ms - _ACTS_WITHIN_MS - self._skew_ms
        stands = [
            stood.target
            for stood in self._pauses
            if _name_of_line(stood.target) == line and stood.stands(since_ms, self._now_ms, self._skew_ms)
        ]
        require(not stands, "a paused job stays parked", f"wake released it from {stands}", key)

    def _sent(self, queue: Queue, message: Message) -> None:
        task = self._world.scheduler.current
        if task is None or not task.process.name.startswith("publish"):
            return
        wire = json.loads(message.body)
        key = f"{wire['tenant']}#{wire['id']}"
        item = self._world.jobs.items.get((key,))
        if not item or number_of(item, "generation") != wire["generation"] or state_of(item) is State.DEAD:
            return
        if "cancel_requested_at" in item:
            # Its run gave it back or was lost. The next worker ends it.
            return
        if _cause(item) in {"limit", "breaker"} or self._unread(task.process.name):
            return
        since_ms = self._now_ms - _ACTS_WITHIN_MS - self._skew_ms
        stood = self._standing(_names(key, item), since_ms, self._now_ms)
        what = f"sent to {queue.name} though {stood.target if stood else ''} is paused"
        require_in_task(self._world.scheduler, stood is None, _NOT_SENT, what, key)

    def _standing(self, names: set[str], from_ms: int, to_ms: int) -> _Stood | None:
        standing = (one for one in self._pauses if one.target in names and one.stands(from_ms, to_ms, self._skew_ms))
        return next(standing, None)

    def _unread(self, process: str) -> bool:
        """Whether this process could not read something: perhaps the configuration, whose last values hold."""
        return self._world.sdk.gave_up[process] > 0

    @property
    def _skew_ms(self) -> int:
        return FAR_OFF_MS if self._world.faults.counted[Fault.CLOCK_FAR_OFF] else LARGEST_SKEW_MS

    @property
    def _now_ms(self) -> int:
        return self._world.scheduler.now_ms


def _names(key: str, item: Item) -> set[str]:
    """The targets of pauses that cover this job, except its limit key."""
    tenant = tenant_of(key)
    names = {f"lane={text_of(item, 'lane')}", f"type={text_of(item, 'type')}", f"tenant={tenant}"}
    names |= {f"schedule={text_of(item, 'type')}"} if tenant == SCHEDULE_TENANT and _makes_up(item) else set()
    return names | ({f"group={tenant} {group}"} if (group := group_of(item)) else set())


def _makes_up(item: Item) -> bool:
    return "tags" in item and {"S": CATCH_UP_TAG} in item["tags"]["L"]


def _limit_names(kind: str, limit_key: str | None, tenant: str) -> set[str]:
    """A limit of one tenant, or across tenants."""
    parts = [kind, limit_key]
    return set() if limit_key is None else {f"limit={json.dumps(key)}" for key in (parts, [*parts, tenant])}


def _cause(item: Item) -> str:
    return str(item["wait"]["M"]["cause"]["S"]) if "wait" in item else ""


def _name_of_line(target: str) -> str:
    return Line.for_pause(target).key


def _ms(text: str) -> int:
    return (datetime.fromisoformat(text) - _EPOCH) // _MILLISECOND


__all__ = ["PauseChecks"]
