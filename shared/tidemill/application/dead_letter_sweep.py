"""Sweep a dead-letter queue: delete outdated messages, dispatch stranded jobs again, keep the messages of dead jobs."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final

from tidemill.application.nudge import Nudger
from tidemill.application.ports import Clock, DeadLetterQueue, ReceivedDeadLetter, SweepStore
from tidemill.domain.dead_letters import DeadLetterAction, dead_letter_action
from tidemill.domain.errors import TidemillError

#: The sweep nudges a stranded job that is overdue by more than this, and not again within it.
NUDGE_LIMIT: Final = timedelta(minutes=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """The number of messages of one dead-letter queue by what the sweep did with them."""

    #: Deleted, because their jobs have moved on.
    outdated: int = 0
    #: Deleted, because their jobs were alive and have been dispatched again.
    nudged: int = 0
    #: Left in the queue: their jobs are still dead, or run now, or a newer version wrote the message or the job.
    kept: int = 0


@dataclass(slots=True)
class _Sorted:
    delete: list[ReceivedDeadLetter] = field(default_factory=list)
    keep: list[ReceivedDeadLetter] = field(default_factory=list)
    nudged: int = 0


def sweep(
    dead_letter_queue: DeadLetterQueue, *, store: SweepStore, clock: Clock, in_time: Callable[[], bool] = lambda: True
) -> Swept:
    """Read every message once and apply the rule for dead-letter messages to it."""
    swept = Swept()
    seen: set[str] = set()
    held: dict[str, ReceivedDeadLetter] = {}
    try:
        # A kept message returns when its visibility timeout ends. A batch of only such messages ends the sweep.
        while in_time() and (
            fresh := [dead_letter for dead_letter in dead_letter_queue.receive() if dead_letter.message_id not in seen]
        ):
            seen.update(dead_letter.message_id for dead_letter in fresh)
            held |= {dead_letter.message_id: dead_letter for dead_letter in fresh}
            done = _sort(fresh, store, clock)
            dead_letter_queue.delete(done.delete)
            for dead_letter in done.delete:
                del held[dead_letter.message_id]
            swept = replace(
                swept,
                outdated=swept.outdated + len(done.delete) - done.nudged,
                nudged=swept.nudged + done.nudged,
                kept=swept.kept + len(done.keep),
            )
    finally:
        dead_letter_queue.put_back(list(held.values()))
    return swept


def _sort(dead_letters: list[ReceivedDeadLetter], store: SweepStore, clock: Clock) -> _Sorted:
    unreadable: set[tuple[str, str]] = set()

    def note(tenant: str, job_id: str, _error: TidemillError) -> None:
        unreadable.add((tenant, job_id))

    keys = {
        (reference.tenant, reference.job_id) for dead_letter in dead_letters if (reference := dead_letter.reference)
    }
    documents = {(job.tenant, job.id): job for job in store.get_many(sorted(keys), unreadable=note)}
    # The message is in the dead-letter queue, so it is not on the lane: the backlog of the lane does not matter.
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
