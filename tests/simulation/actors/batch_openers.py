"""Programs that open a batch, submit its jobs, some of them twice or late, and close or cancel it."""

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from functools import partial
from random import Random
from typing import Any, Final

from tests.simulation.actors.callers import TENANTS
from tests.simulation.checks.batches import KINDS, BatchChecks
from tests.simulation.checks.violation import maps_of, require_in_task, state_of, text_of
from tests.simulation.world.dynamodb_table import Record
from tests.simulation.world.world import World
from tidemill import composition
from tidemill.application.batches.batches import cancel_batch, close_batch, open_batch
from tidemill.application.control.control import Control
from tidemill.application.features import submit_features
from tidemill.application.ports import WriterPayloads
from tidemill.application.submission.job_ids import keyed_job_id
from tidemill.application.submission.submit import Submit
from tidemill.domain.batches.batches import Batch
from tidemill.domain.errors import (
    BatchRefusedError,
    InvalidPayloadError,
    NotAllowedNowError,
    SignalRefusedError,
    TidemillError,
)
from tidemill.domain.job import Job
from tidemill.domain.states import FINAL_STATES, State
from tidemill.domain.submission.submission import Submission
from tidemill.dynamodb.document import from_milliseconds
from tidemill.powertools import idempotency
from tidemill.system import clock, ids

#: Share of seeds with batches.
_OPENED: Final = 0.2
_MOST_BATCHES: Final = 2
_MOST_JOBS: Final = 5
_WITHIN_MS: Final = (50, 5_000, 60_000)
_PAUSE_MS: Final = (10, 60_000)
_NESTED: Final = 0.3
_CANCELLED: Final = 0.2
_CANCELLED_WHILE_IT_RUNS: Final = 0.2
#: The share of its runs after the close in which it is cancelled, and how long such a run takes.
_AT_ONCE: Final = 0.5
_LAST_RUN_MS: Final = 400
_TWICE: Final = 0.3
_LATE: Final = 0.3
#: The owner redrives a dead batch at random times, once most of its jobs can succeed.
_REDRIVEN: Final = 0.7
#: The share of batches whose jobs can all succeed.
_REPAIRABLE: Final = 0.5
_REPAIRABLE_TYPES: Final = ("sim.effect", "sim.repaired")
_TYPES: Final = ("sim.effect", "sim.effect", "sim.plain", "sim.permanent", "sim.repaired")
_REDRIVES: Final = 3
_REPAIRED_MINUTES: Final = 5
_REDRIVEN_MS: Final = 3_600_000
#: For longer than any faults last.
_CLOSED_AGAIN_MS: Final = 600_000
_MOST_CLOSES: Final = 300
#: In milliseconds around the close: such a job may find the batch open or closed.
_ABOUT_CLOSE: Final = (-50, 50)

#: So many programs that submit a job are suspended between their read of the batch and their write, and for so long.
_SUSPENDED: Final = 0.2
#: So many batches have a caller that gives a job the key that a callback would have as the key of a job.
_IMITATED: Final = 0.5
_SUSPENDED_MS: Final = 30_000

_Close = Callable[[Control, str, str], Job | None]


def _id_of(tenant: str, name: str) -> str:
    return keyed_job_id(tenant, f"batch/{name}")


def _close_now(control: Control, tenant: str, batch_id: str) -> Job | None:
    return close_batch(control, tenant, batch_id, now=clock.now())


class _SuspendedPayloads:
    """The payloads of a program that is suspended just before it writes a job."""

    def __init__(self, payloads: WriterPayloads, suspend: Callable[[], None]) -> None:
        self._payloads = payloads
        self._suspend = suspend
        self.load, self.delete, self.stays_inline = payloads.load, payloads.delete, payloads.stays_inline
        self.delete_later = payloads.delete_later

    def put_away(self, job: Job, *, now: datetime | None = None) -> Job:
        self._suspend()
        return self._payloads.put_away(job, now=now)


class BatchOpeners:
    """Open batches in one world. Their own chance leaves the other seeds as they are."""

    def __init__(self, world: World, checks: BatchChecks) -> None:
        self._world = world
        self._random = Random(f"batches {world.seed}")
        self._checks = checks
        #: By key, tenant and name of each batch to be cancelled while it runs, after its close.
        self._to_cancel: dict[str, tuple[str, str]] = {}
        world.jobs.watchers.append(self._changed)

    def plan(self) -> None:
        random, scheduler = self._random, self._world.scheduler
        if random.random() >= _OPENED:
            return
        tenant, outer = random.choice(TENANTS), None
        for number in range(random.randint(1, _MOST_BATCHES)):
            name = f"batch-{number}"
            inside = outer if random.random() < _NESTED else None
            close_ms = scheduler.now_ms + random.randint(0, random.choice(_WITHIN_MS))
            self._in_process(scheduler.now_ms, name, partial(self._use, tenant, name, inside, close_ms))
            act = cancel_batch if random.random() < _CANCELLED else _close_now
            if act is _close_now and random.random() < _CANCELLED_WHILE_IT_RUNS:
                self._to_cancel[f"{tenant}#{_id_of(tenant, name)}"] = (tenant, name)
            scheduler.at(close_ms, self._begin_to_close, tenant, name, act)
            outer = name
            for _ in range(_REDRIVES if random.random() < _REDRIVEN else 0):
                at_ms = close_ms + random.randint(_REPAIRED_MINUTES * 60_000, _REDRIVEN_MS)
                self._in_process(at_ms, name, partial(self._redrive, tenant, name))

    def _changed(self, record: Record) -> None:
        """The run that begins may be the last, and end the batch by what it read before the cancel."""
        key, after = record.keys["pk"]["S"], record.after or {}
        begins = key in self._to_cancel and text_of(after, "owner") != text_of(record.before, "owner")
        if (
            begins
            and state_of(after) is State.RUNNING
            and maps_of(after, "signals")
            and self._random.random() < _AT_ONCE
        ):
            tenant, name = self._to_cancel.pop(key)
            at_ms = self._world.scheduler.now_ms + self._random.randint(0, _LAST_RUN_MS)
            self._in_process(at_ms, name, partial(self._close, tenant, _id_of(tenant, name), name, cancel_batch))

    def _in_process(self, at_ms: int, name: str, act: Callable[[], None]) -> None:
        def begin() -> None:
            self._world.scheduler.spawn(self._world.process(name), act)

        self._world.scheduler.at(at_ms, begin)

    def _begin_to_close(self, tenant: str, name: str, close: _Close, tries: int = _MOST_CLOSES) -> None:
        """Until it is closed, in one process after the other: each may be killed, and it would be open for a month.

        A dead one cannot be closed. After a redrive, it waits for the close.
        """
        world, batch_id = self._world, _id_of(tenant, name)
        item = world.jobs.items.get((f"{tenant}#{batch_id}",))
        if tries and not (item and (maps_of(item, "signals") or state_of(item) in FINAL_STATES)):
            self._in_process(world.scheduler.now_ms, name, partial(self._close, tenant, batch_id, name, close))
            at_ms = world.scheduler.now_ms + _CLOSED_AGAIN_MS
            world.scheduler.at(at_ms, self._begin_to_close, tenant, name, close, tries - 1)

    def _use(self, tenant: str, name: str, outer: str | None, close_ms: int) -> None:
        """Open it, and submit its jobs."""
        random, scheduler = self._random, self._world.scheduler
        asked = [kind for kind in KINDS if random.random() < 0.8]
        callbacks: dict[str, Any] = {kind: Submission(type="sim.effect", payload={"key": kind}) for kind in asked}
        inside = self._checks.opened.get((tenant, outer)) if outer else None
        batch = Batch(**callbacks, key=name, batch=inside)
        batch_id = self._until_done(name, lambda: self._opened(batch, tenant, name))
        if batch_id is None:
            return
        self._checks.opened[tenant, name] = batch_id
        close_ms = max(close_ms, scheduler.now_ms)
        self._imitate(tenant, name, batch_id, asked)
        repairable = random.random() < _REPAIRABLE
        for number in range(random.randint(0, _MOST_JOBS)):
            member = self._member(batch_id, f"{name}-{number}", repairable=repairable)
            for _ in range(2 if random.random() < _TWICE else 1):
                at_ms = random.randint(scheduler.now_ms, close_ms)
                at_ms = close_ms + random.randint(*_ABOUT_CLOSE) if random.random() < _LATE else at_ms
                self._in_process(max(at_ms, scheduler.now_ms), name, partial(self._submit, tenant, member, name))

    def _imitate(self, tenant: str, name: str, batch_id: str, asked: list[str]) -> None:
        """A job with this key must not take the id of the callback: the batch would never end."""
        random = Random(f"imitated callbacks {name} {self._world.seed}")
        batch = self._world.jobs.items.get((f"{tenant}#{batch_id}",))
        if batch is None or not asked or random.random() >= _IMITATED:
            return
        made = from_milliseconds(batch["created_at"]).isoformat()
        key = f"batch/{batch_id}/{made}/{random.choice(asked)}"
        imitation = Submission(type="sim.plain", payload={}, key=key)
        self._in_process(self._world.scheduler.now_ms, name, partial(self._submit, tenant, imitation, name))

    def _member(self, batch_id: str, key: str, *, repairable: bool) -> Submission:
        random = self._random
        type_ = random.choice(_REPAIRABLE_TYPES if repairable else _TYPES)
        plan = {
            "fails": random.choice([0, 0, 1, 0 if repairable else 6]),
            "seconds": random.choice([0.0, 0.1]),
            "count": _REPAIRED_MINUTES,
        }
        group = random.choice([None, None, "berlin"])
        return Submission(type=type_, payload=plan, key=key, batch=batch_id, group=group)

    def _opened(self, batch: Batch, tenant: str, name: str) -> str | None:
        try:
            return open_batch(batch, composition.parts().submit, tenant=tenant, trace=name).job.id
        except BatchRefusedError:
            # The outer one was closed before.
            return None

    def _suspended(self, ms: int) -> Submit:
        payloads = _SuspendedPayloads(composition.parts().payloads, lambda: self._world.scheduler.sleep(ms))
        parts = composition.parts()
        return submit_features.submit(
            store=parts.store,
            payloads=payloads,
            job_types=parts.job_types,
            clock=clock.now,
            new_id=ids.new_job_id,
            insert_once=idempotency.insert_once,
        )

    def _submit(self, tenant: str, member: Submission, name: str) -> None:
        ms = self._random.randint(0, _SUSPENDED_MS) if self._random.random() < _SUSPENDED else 0

        def act() -> None:
            try:
                submit = self._suspended(ms) if ms else composition.parts().submit
                accepted = submit(member, tenant=tenant, trace=name)
            except (BatchRefusedError, InvalidPayloadError) as refused:
                self._world.log(name, f"{member.key} came too late: {refused}")
            else:
                if member.batch is not None:
                    self._checks.joined.append((f"{tenant}#{member.batch}", f"{tenant}#{accepted.job.id}"))

        self._until_done(name, act)

    def _close(self, tenant: str, batch_id: str, name: str, close: _Close) -> None:
        def act() -> None:
            try:
                close(composition.parts().control, tenant, batch_id)
            except SignalRefusedError as refused:
                self._world.log(name, f"not closed: {refused}")
            else:
                self._close_again(tenant, batch_id, name, close)

        self._done(name, act)

    def _close_again(self, tenant: str, batch_id: str, name: str, close: _Close) -> None:
        """Close the batch again, as a program that did not get the answer."""
        try:
            close(composition.parts().control, tenant, batch_id)
        except (InvalidPayloadError, SignalRefusedError) as refused:
            require_in_task(self._world.scheduler, False, "a close may be repeated", str(refused), name)

    def _redrive(self, tenant: str, name: str) -> None:
        def act() -> None:
            with suppress(NotAllowedNowError):
                composition.parts().control.redrive(tenant, _id_of(tenant, name))

        self._done(name, act)

    def _until_done(self, name: str, act: Callable[[], str | None]) -> str | None:
        while True:
            done, answer = self._done(name, act)
            if done:
                return answer
            self._world.scheduler.sleep(self._random.randint(*_PAUSE_MS))

    def _done(self, name: str, act: Callable[[], str | None]) -> tuple[bool, str | None]:
        try:
            return True, act()
        except TidemillError as error:
            self._world.log(name, f"tries again: {error}")
            return False, None
