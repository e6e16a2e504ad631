"""Operators that act on a document they read some time ago: a page left open, a tool or an invocation that hung."""

from collections import defaultdict
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from tests.simulation.actors.callers import TENANTS, run_tool
from tests.simulation.actors.operator_objects import purger
from tests.simulation.checks.violation import Item, number_of, require_in_task, state_of
from tests.simulation.world.dynamodb_table import Record
from tests.simulation.world.faults import Fault
from tests.simulation.world.task_scheduler import Process
from tests.simulation.world.world import World
from tidemill import composition
from tidemill.application.operations.reconcile import Reconciler
from tidemill.domain.errors import WriteRefusedError
from tidemill.domain.job import Job
from tidemill.domain.states import TERMINAL, State
from tidemill.dynamodb import document
from tidemill.names import WAKE_WINDOW_SECONDS
from tidemill.system import clock, ids

#: Longest delay between reading and acting.
_LATE_MS: Final = (0, 20, 1_000, 600_000)
#: Longest delay after a job is overdue or has expired.
_AFTER_OVERDUE_MS: Final = 60_000
_HALF: Final = 0.5
_CHANCES_AFTER_END: Final = 3
#: Few seeds have a second job of one key.
_CHANCES_WITH_LATER_JOB: Final = 10
_FRESH_FOR: Final = timedelta(minutes=5)


class StaleOperators:
    """They do what was correct when they read the job. The engine must refuse it if it no longer is."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._read: defaultdict[str, list[Item]] = defaultdict(list)

    def begin(self) -> None:
        self._world.jobs.watchers.append(self._changed)
        for queue in self._world.lanes.values():
            queue.return_watchers.append(self._message_returns)

    def _changed(self, record: Record) -> None:
        random = self._world.random
        if not record.after or "state" not in record.after:
            return
        read = self._read[record.keys["pk"]["S"]]
        # A job that ended or is scheduled stays for long, and a later job of the key suffers the most damage.
        chances = _CHANCES_AFTER_END if state_of(record.after) in {*TERMINAL, State.SCHEDULED} else 1
        if any(seen["created_at"] != record.after["created_at"] for seen in read):
            chances = _CHANCES_WITH_LATER_JOB
        for _ in range(chances):
            if self._world.faults.occurs(Fault.STALE_OPERATOR):
                seen = self._read_earlier(record.after, read)
                if random.random() < _HALF:
                    self._world.scheduler.at(self._too_late_ms(record.after), self._start, seen)
                else:
                    self._world.scheduler.after(random.randint(0, random.choice(_LATE_MS)), self._start, seen)
        read.append(record.after)

    def _read_earlier(self, item: Item, read: list[Item]) -> Item:
        """The document that an operator has read: preferably of an earlier job of the key."""
        alike = [seen for seen in read if seen["state"] == item["state"]]
        others = [seen for seen in read if seen["created_at"] != item["created_at"]]
        confusable = [seen for seen in alike if seen in others]
        return self._world.random.choice([*confusable[-2:], *others[-1:]] or [item, *alike[:1], *alike[-1:]])

    def _message_returns(self, found_ms: int) -> None:
        """Act on the first version of each running job around the time when a lost message returns."""
        scheduler = self._world.scheduler
        for read in self._read.values():
            if state_of(read[-1]) is State.RUNNING:
                scheduler.at(max(found_ms - scheduler.random.randint(-40, 60), scheduler.now_ms), self._start, read[0])

    def _too_late_ms(self, item: Item) -> int:
        """A time when the job is overdue or has expired."""
        limit_ms = self._world.deployment.stage.reconcile_limit_seconds * 1000
        too_late_ms = number_of(item, "expires_at") * 1000 or number_of(item, "due") + limit_ms
        return too_late_ms + self._world.random.randint(0, _AFTER_OVERDUE_MS)

    def _start(self, seen: Item) -> None:
        run_tool(self._world, "cleo", partial(self._act, seen))

    def _act(self, seen: Item, _process: Process) -> None:
        world, store, job = self._world, composition.parts().store, document.decode(dict(seen))
        world.log("cleo", f"acts on {job.id}, {job.state} as they saw it at generation {job.generation}")
        with suppress(WriteRefusedError):
            if _may_be_purged(job, clock.now()) and world.faults.occurs(Fault.PURGED):
                purger().purge(job)
                return
            match job.state:
                case State.DEAD:
                    store.redrive(job, token=ids.new_token(), now=clock.now(), by="cleo")
                case State.SUCCEEDED | State.CANCELLED:
                    return
                case State.SCHEDULED:
                    if not job.due or job.due > clock.now() + timedelta(seconds=WAKE_WINDOW_SECONDS):
                        return
                    store.wake(job, now=clock.now())
                case _:
                    limit = timedelta(seconds=world.deployment.stage.reconcile_limit_seconds)
                    if not Reconciler(store=store, clock=clock.now, limit=limit).nudge(job):
                        return
            self._require_same_job(seen)

    def _require_same_job(self, seen: Item) -> None:
        """The write was accepted, so the job in the table must be the job that was read."""
        key = seen["pk"]["S"]
        found = self._world.jobs.items.get((key,), seen)
        same = found["created_at"] == seen["created_at"]
        what = f"cleo read the job created at {seen['created_at']['N']}, which was gone"
        require_in_task(self._world.scheduler, same, "an operator changes only the job they read", what, key)


def _may_be_purged(job: Job, now: datetime) -> bool:
    """A purge would free the key. So operators leave recent, unique and periodic jobs."""
    old = job.finished_at is not None and now - job.finished_at > _FRESH_FOR
    return old and not job.lifetime.unique_until and job.tenant in TENANTS


__all__ = ["StaleOperators"]
