"""Redrive: give dead jobs another life from their documents, and tidy the letters that told of them."""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final

from tidemill.application.nudge import Nudger
from tidemill.application.ports import (
    Clock,
    DeadLetterQueue,
    NewToken,
    ReceivedDeadLetter,
    RedriveStore,
    SweepStore,
    Unreadable,
    ignore_unreadable,
)
from tidemill.domain.dead_letters import DeadLetterAction, dead_letter_action
from tidemill.domain.errors import TidemillError, WriteRefusedError
from tidemill.domain.job import Job

#: A stranded job is nudged when it is overdue by more than this, and not again within it.
NUDGE_LIMIT: Final = timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which dead jobs. Empty means all."""

    types: Collection[str] = ()
    ids: Collection[str] = ()

    def __contains__(self, job: Job) -> bool:
        return (not self.types or job.type in self.types) and (not self.ids or job.id in self.ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """What became of the letters of a box."""

    #: Their jobs have moved on; deleted.
    outdated: int = 0
    #: Their jobs were alive and have been dispatched again; deleted.
    nudged: int = 0
    #: Their jobs are still dead, or run at this moment, or a newer version wrote them; left where they were.
    kept: int = 0


@dataclass(slots=True)
class _Sorted:
    delete: list[ReceivedDeadLetter] = field(default_factory=list)
    keep: list[ReceivedDeadLetter] = field(default_factory=list)
    nudged: int = 0


class Redriver:
    """The use case. Each step may be repeated, and two may run at once: the documents decide."""

    def __init__(self, *, store: RedriveStore, clock: Clock, new_token: NewToken) -> None:
        self._store = store
        self._clock = clock
        self._new_token = new_token

    def plan(self, selection: Selection, *, unreadable: Unreadable = ignore_unreadable) -> Iterator[Job]:
        """The dead jobs that `selection` names, without those past their time. Changes nothing."""
        now = self._clock()
        dead = self._store.dead(unreadable=unreadable)
        return (job for job in dead if job in selection and not job.expired(now))

    def redrive(self, job: Job, *, by: str) -> bool:
        """False when somebody else moved it first."""
        try:
            self._store.redrive(job, token=self._new_token(), now=self._clock(), by=by)
        except WriteRefusedError:
            return False
        return True

    def sweep(self, box: DeadLetterQueue) -> Swept:
        return sweep(box, store=self._store, clock=self._clock)


def sweep(
    box: DeadLetterQueue, *, store: SweepStore, clock: Clock, in_time: Callable[[], bool] = lambda: True
) -> Swept:
    """Read every letter once: delete what is outdated, nudge what is stranded, leave the dead ones."""
    swept = Swept()
    seen: set[str] = set()
    held: dict[str, ReceivedDeadLetter] = {}
    try:
        # A kept letter comes back when its hiding ends; a batch of nothing but those is the end of the box.
        while in_time() and (
            fresh := [dead_letter for dead_letter in box.receive() if dead_letter.message_id not in seen]
        ):
            seen.update(dead_letter.message_id for dead_letter in fresh)
            held |= {dead_letter.message_id: dead_letter for dead_letter in fresh}
            done = _sort(fresh, store, clock)
            box.delete(done.delete)
            for dead_letter in done.delete:
                del held[dead_letter.message_id]
            swept = replace(
                swept,
                outdated=swept.outdated + len(done.delete) - done.nudged,
                nudged=swept.nudged + done.nudged,
                kept=swept.kept + len(done.keep),
            )
    finally:
        box.put_back(list(held.values()))
    return swept


def _sort(dead_letters: list[ReceivedDeadLetter], store: SweepStore, clock: Clock) -> _Sorted:
    unreadable: set[tuple[str, str]] = set()

    def note(tenant: str, job_id: str, _error: TidemillError) -> None:
        unreadable.add((tenant, job_id))

    keys = {
        (reference.tenant, reference.job_id) for dead_letter in dead_letters if (reference := dead_letter.reference)
    }
    documents = {(job.tenant, job.id): job for job in store.get_many(sorted(keys), unreadable=note)}
    # A letter says that no message is left, whatever else waits on its lane.
    nudger = Nudger(store=store, clock=clock, limit=NUDGE_LIMIT)
    done = _Sorted()
    for dead_letter in dead_letters:
        reference = dead_letter.reference
        key = (reference.tenant, reference.job_id) if reference else None
        job = documents.get(key) if key else None
        action = dead_letter_action(reference, job, now=clock())
        if dead_letter.newer or key in unreadable or action is DeadLetterAction.DEAD:
            done.keep.append(dead_letter)
        elif action is DeadLetterAction.OUTDATED or job is None:
            done.delete.append(dead_letter)
        elif nudger.nudge(job):
            done.delete.append(dead_letter)
            done.nudged += 1
        else:
            done.keep.append(dead_letter)
    return done
