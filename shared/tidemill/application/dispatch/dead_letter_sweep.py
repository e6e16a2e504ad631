"""Sweep a dead-letter queue: delete outdated messages, dispatch stranded jobs again, keep the messages of dead jobs."""

from collections.abc import Callable
from datetime import timedelta
from typing import Final

from msgspec import Struct, field

from tidemill.application.dispatch.nudge import Nudger
from tidemill.application.ports import Clock, DeadLetterQueue, ReceivedDeadLetter, SweepStore
from tidemill.domain.dispatch.dead_letters import DeadLetterAction, dead_letter_action
from tidemill.domain.error_text import error_text
from tidemill.domain.errors import TidemillError
from tidemill.domain.job import Job
from tidemill.domain.records import replace

#: The sweep nudges a stranded job that is overdue by more than this, and not again within it.
NUDGE_LIMIT: Final = timedelta(minutes=1)
#: Between two looks at the time.
_HIDDEN_AT_ONCE: Final = 10


class Swept(Struct, frozen=True, kw_only=True):
    """The number of messages of one dead-letter queue by what the sweep did with them."""

    #: Deleted, because their jobs have moved on.
    outdated: int = 0
    #: Deleted, because their jobs were alive and have been dispatched again.
    nudged: int = 0
    #: Left in the queue: their jobs are still dead, or run now, or a newer version wrote the message or the job.
    kept: int = 0
    #: Among those left, the ones that SQS did not delete or whose jobs could not be dispatched again, and the last
    #: error.
    failed: int = 0
    error: str | None = None
    #: Whether the sweep ended before the end of the queue.
    unfinished: bool = False


class SweepBounds(Struct, frozen=True, kw_only=True):
    """The bounds of one sweep."""

    #: The most messages that the sweep keeps hidden.
    most: int
    #: A received message stays hidden for this long, unless the sweep hides it again. Longer than the sweep itself, so
    #: that it receives no message twice.
    hidden_for: timedelta
    #: A sweep that does not reach the end of the queue leaves the messages that it kept hidden for this long, so that
    #: the next sweeps receive others.
    rotation: timedelta


#: For reconcile. The next 20 runs, one every five minutes, read 5,000 other messages each: 105,000 messages, in
#: any order in which SQS returns them. At most 120,000 messages of a queue can be hidden at a time:
#: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-queues.html
ROTATING: Final = SweepBounds(most=5_000, hidden_for=timedelta(minutes=2), rotation=timedelta(minutes=105))
#: For an operator, who waits for the end.
WHOLE: Final = SweepBounds(most=100_000, hidden_for=timedelta(hours=1), rotation=timedelta(0))


class _Sorted(Struct):
    #: These two to delete.
    outdated: list[ReceivedDeadLetter] = field(default_factory=list)
    nudged: list[ReceivedDeadLetter] = field(default_factory=list)
    keep: list[ReceivedDeadLetter] = field(default_factory=list)
    failed: int = 0
    error: str | None = None


def sweep(
    dead_letter_queue: DeadLetterQueue,
    *,
    store: SweepStore,
    clock: Clock,
    bounds: SweepBounds = WHOLE,
    time_left: Callable[[], timedelta] = lambda: timedelta.max,
    progress: Callable[[Swept], object] = lambda _: None,
) -> Swept:
    """Apply the rule for dead-letter messages to each message once, within `bounds` and until `time_left` is zero.

    Calls `progress` with what it has done so far, so that this is known if it is interrupted or fails.
    """
    swept = Swept(unfinished=True)
    seen: set[str] = set()
    kept: list[ReceivedDeadLetter] = []
    fresh: list[ReceivedDeadLetter] = []
    # A batch takes at least two calls to read, and one to hide again. So half of the time is enough to hide them all.
    half = time_left() / 2
    finished = failed = False
    try:
        while len(kept) < bounds.most and time_left() > half:
            received = dead_letter_queue.receive(hidden_for=bounds.hidden_for)
            fresh = [dead_letter for dead_letter in received if dead_letter.message_id not in seen]
            if not fresh:
                finished = True
                break
            seen.update(dead_letter.message_id for dead_letter in fresh)
            done = _sort(fresh, store, clock)
            _delete(done, dead_letter_queue)
            kept += done.keep
            fresh = []
            swept = replace(
                swept,
                outdated=swept.outdated + len(done.outdated),
                nudged=swept.nudged + len(done.nudged),
                kept=swept.kept + len(done.keep),
                failed=swept.failed + done.failed,
                error=done.error or swept.error,
            )
            progress(swept)
    except BaseException:
        failed = True
        raise
    finally:
        rotation = timedelta(0) if finished or failed else bounds.rotation
        _hide([*fresh, *kept], dead_letter_queue, rotation, time_left)
    return replace(swept, unfinished=not finished)


def _delete(done: _Sorted, dead_letter_queue: DeadLetterQueue) -> None:
    """A message that SQS does not delete stays: a later sweep meets it again."""
    to_delete = [*done.outdated, *done.nudged]
    for refusal in dead_letter_queue.delete(to_delete):
        dead_letter = to_delete[refusal.index]
        (done.outdated if dead_letter in done.outdated else done.nudged).remove(dead_letter)
        done.keep.append(dead_letter)
        done.failed += 1
        done.error = refusal.error


def _hide(
    dead_letters: list[ReceivedDeadLetter],
    dead_letter_queue: DeadLetterQueue,
    duration: timedelta,
    time_left: Callable[[], timedelta],
) -> None:
    """Hide these messages for `duration`. Those for which no time is left become visible by themselves."""
    for start in range(0, len(dead_letters), _HIDDEN_AT_ONCE):
        if time_left() <= timedelta(0):
            return
        dead_letter_queue.hide(dead_letters[start : start + _HIDDEN_AT_ONCE], duration=duration)


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
            done.outdated.append(dead_letter)
        elif _nudged(nudger, job, done):
            done.nudged.append(dead_letter)
        else:
            done.keep.append(dead_letter)
    return done


def _nudged(nudger: Nudger, job: Job, done: _Sorted) -> bool:
    try:
        return nudger.nudge(job) is not None
    except Exception as error:  # noqa: BLE001 - one job that cannot be written must not end the sweep of the others
        done.failed += 1
        done.error = error_text(error)
        return False
