"""How far one sweep of a dead-letter queue goes, what it does with each message, and what it leaves hidden."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.support.builders import MILLISECOND, NOW, SECOND, a_job, reference_to
from tidemill.application.dispatch.dead_letter_sweep import ROTATING, WHOLE, SweepBounds, Swept, sweep
from tidemill.application.operations.reconcile import LONGEST_SWEEP
from tidemill.application.ports import ReceivedDeadLetter, Refusal, Unreadable
from tidemill.domain.errors import MalformedDocumentError, StoreUnavailableError, WriteRefusedError
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.names import RECONCILE_INTERVAL_SECONDS

BOUNDS = SweepBounds(most=1_000, hidden_for=timedelta(minutes=2), rotation=timedelta(minutes=105))
HOUR = timedelta(hours=1)


def a_letter(job: Job | None = None, **changes: Any) -> ReceivedDeadLetter:
    name = job.id if job else "malformed"
    body = reference_to(job) if job else None
    return replace(ReceivedDeadLetter(message_id=name, receipt=name, body=body, sent_at=NOW), **changes)


class Queue:
    """Ten messages at a time. A received one does not come again in this sweep."""

    def __init__(self, letters: Sequence[ReceivedDeadLetter]) -> None:
        self.visible = [*letters]
        self.deleted: list[str] = []
        self.hidden: list[tuple[list[str], timedelta]] = []
        self.receives = 0
        self.on_delete: Callable[[], object] = lambda: None

    def receive(self, *, hidden_for: timedelta) -> Sequence[ReceivedDeadLetter]:
        assert hidden_for == BOUNDS.hidden_for
        self.receives += 1
        found, self.visible = self.visible[:10], self.visible[10:]
        return found

    def delete(self, dead_letters: Sequence[ReceivedDeadLetter]) -> Sequence[Refusal]:
        self.on_delete()
        self.deleted += [each.message_id for each in dead_letters]
        return []

    def hide(self, dead_letters: Sequence[ReceivedDeadLetter], *, duration: timedelta) -> None:
        self.hidden.append(([each.message_id for each in dead_letters], duration))


class Store:
    """Jobs of which some cannot be read or nudged."""

    def __init__(self, *jobs: Job) -> None:
        self.jobs = {(job.tenant, job.id): job for job in jobs}
        self.unreadable: set[str] = set()
        self.errors: dict[str, Exception] = {}
        self.nudged: list[tuple[str, datetime, timedelta]] = []
        self.down = False

    def get_many(self, keys: Sequence[tuple[str, str]], *, unreadable: Unreadable) -> list[Job]:
        if self.down:
            raise StoreUnavailableError("down")
        assert list(keys) == sorted(set(keys))
        for tenant, job_id in keys:
            if job_id in self.unreadable:
                unreadable(tenant, job_id, MalformedDocumentError("of a newer version"))
        return [self.jobs[key] for key in keys if key in self.jobs and key[1] not in self.unreadable]

    def nudge(self, job: Job, *, now: datetime, limit: timedelta, last: bool) -> None:
        assert not last
        if error := self.errors.get(job.id):
            raise error
        self.nudged.append((job.id, now, limit))


def swept(queue: Queue, store: Store, **options: Any) -> Swept:
    return sweep(queue, store=store, clock=lambda: NOW, **{"bounds": BOUNDS} | options)  # type: ignore[arg-type]


def dead(count: int) -> list[Job]:
    return [a_job(id=f"dead-{number:03}", state=State.DEAD) for number in range(count)]


def names(jobs: Sequence[Job]) -> list[str]:
    return [job.id for job in jobs]


@pytest.mark.parametrize(
    ("job", "changes", "found"),
    [
        (a_job(id="j", state=State.DEAD), {}, Swept(kept=1)),
        (a_job(id="j", state=State.SUCCEEDED), {}, Swept(outdated=1)),
        (a_job(id="j", state=State.DEAD, generation=2), {"body": reference_to(a_job(id="j"))}, Swept(outdated=1)),
        (a_job(id="j", state=State.QUEUED), {}, Swept(nudged=1)),
        (a_job(id="j", state=State.SUCCEEDED), {"newer": True}, Swept(kept=1)),
        (None, {}, Swept(outdated=1)),
        (None, {"newer": True}, Swept(kept=1)),
    ],
)
def test_each_message_is_deleted_kept_or_dispatched_again(
    job: Job | None, changes: dict[str, Any], found: Swept
) -> None:
    queue, store = Queue([a_letter(job, **changes)]), Store(*([job] if job else []))

    assert swept(queue, store) == found

    assert len(queue.deleted) == found.outdated + found.nudged
    # The sweep asks for a claim of the last minute, since no worker has the message.
    assert store.nudged == [("j", NOW, timedelta(minutes=1))] * found.nudged
    assert queue.hidden == ([([job.id if job else "malformed"], timedelta(0))] if found.kept else [])


def test_a_message_of_a_job_that_is_gone_is_deleted() -> None:
    queue = Queue([a_letter(a_job(id="gone"))])
    assert swept(queue, Store()) == Swept(outdated=1)
    assert queue.deleted == ["gone"]


def test_a_message_of_a_job_that_cannot_be_read_stays() -> None:
    job = a_job(id="newer", state=State.SUCCEEDED)
    queue, store = Queue([a_letter(job)]), Store(job)
    store.unreadable = {"newer"}
    assert swept(queue, store) == Swept(kept=1)
    assert queue.deleted == []


@pytest.mark.parametrize(
    ("error", "found"),
    [
        (WriteRefusedError("nudge", None), Swept(kept=1)),
        (ValueError("too large"), Swept(kept=1, failed=1, error="ValueError: too large")),
    ],
)
def test_a_job_that_is_not_dispatched_again_keeps_its_message(error: Exception, found: Swept) -> None:
    job = a_job(id="j")
    queue, store = Queue([a_letter(job)]), Store(job)
    store.errors = {"j": error}
    assert swept(queue, store) == found
    assert queue.deleted == []


def test_the_counts_of_all_batches_add_up() -> None:
    stay = dead(12)
    alive = [a_job(id=f"live-{number:02}") for number in range(11)]
    ended = [a_job(id=f"done-{number:02}", state=State.SUCCEEDED) for number in range(9)]
    store = Store(*stay, *alive, *ended)
    store.errors = {"live-00": ValueError("first"), "live-03": ValueError("last")}
    queue = Queue([a_letter(job) for job in (*alive, *ended, *stay)])

    assert swept(queue, store) == Swept(outdated=9, nudged=9, kept=14, failed=2, error="ValueError: last")

    assert sorted(queue.deleted) == sorted([*names(ended), *set(names(alive)) - {"live-00", "live-03"}])
    (first, second) = queue.hidden
    assert [first[0][:2], len(first[0]), len(second[0])] == [["live-00", "live-03"], 10, 4]
    assert {duration for _, duration in queue.hidden} == {timedelta(0)}


def test_a_message_that_comes_twice_counts_once() -> None:
    jobs = dead(1)
    queue = Queue([a_letter(jobs[0])] * 25)
    assert swept(queue, Store(*jobs)) == Swept(kept=10)
    assert queue.receives == 2, "a batch of messages that came before is the end"


@pytest.mark.parametrize(
    ("most", "receives", "finished"),
    [(20, 2, False), (21, 3, False), (25, 3, False), (26, 4, True)],
)
def test_a_sweep_that_has_kept_its_most_leaves_them_hidden_for_the_rotation(
    most: int, receives: int, finished: bool
) -> None:
    jobs = dead(25)
    queue = Queue([a_letter(job) for job in jobs])

    found = swept(queue, Store(*jobs), bounds=replace(BOUNDS, most=most))

    kept = min(receives * 10, 25)
    assert found == Swept(kept=kept, unfinished=not finished)
    assert queue.receives == receives
    assert [each for some, _ in queue.hidden for each in some] == names(jobs)[:kept]
    assert {duration for _, duration in queue.hidden} == {timedelta(0) if finished else BOUNDS.rotation}


@pytest.mark.parametrize(
    ("left", "receives", "hides"),
    [
        # What is left when the sweep begins, before each receive, and before each hide.
        ([10, 5.001, 5, 1, 1], 1, 1),
        ([10, 5, 1], 0, 0),
        ([10, 9, 8, 4, 0.001, 0], 2, 1),
        ([10, 9, 8, 4, 0], 2, 0),
        ([10, 9, 8, 4, -1], 2, 0),
        ([10, 9, 8, 4, 1, 1], 2, 2),
    ],
)
def test_half_of_the_time_is_for_hiding_what_was_kept(left: list[float], receives: int, hides: int) -> None:
    jobs = dead(40)
    queue, times = Queue([a_letter(job) for job in jobs]), iter(left)

    found = swept(queue, Store(*jobs), time_left=lambda: next(times) * SECOND)

    assert found == Swept(kept=10 * receives, unfinished=True)
    assert (queue.receives, len(queue.hidden)) == (receives, hides)


def test_a_sweep_that_fails_makes_all_that_it_received_visible_again() -> None:
    jobs = dead(15)
    queue, store = Queue([a_letter(job) for job in jobs]), Store(*jobs)
    queue.on_delete = lambda: setattr(store, "down", True)

    with pytest.raises(StoreUnavailableError):
        swept(queue, store)

    assert [each for some, _ in queue.hidden for each in some] == [*names(jobs)[10:], *names(jobs)[:10]]
    assert {duration for _, duration in queue.hidden} == {timedelta(0)}


def test_a_sweep_that_is_interrupted_makes_what_it_received_visible_again() -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    jobs = dead(3)
    queue = Queue([a_letter(job) for job in jobs])
    queue.on_delete = interrupt
    with pytest.raises(KeyboardInterrupt):
        swept(queue, Store(*jobs))
    assert queue.hidden == [(names(jobs), timedelta(0))]


def test_the_bounds_of_reconcile_let_it_reach_a_hundred_thousand_messages() -> None:
    interval = timedelta(seconds=RECONCILE_INTERVAL_SECONDS)
    assert ROTATING.most == 5_000
    # The run after the last one of a rotation receives the messages of the first one again.
    assert ROTATING.most * (ROTATING.rotation // interval) == 105_000
    assert ROTATING.hidden_for == 2 * LONGEST_SWEEP
    assert (WHOLE.most, WHOLE.hidden_for, WHOLE.rotation) == (100_000, HOUR, timedelta(0))


def test_a_message_is_hidden_again_only_with_time_to_spare() -> None:
    jobs = dead(1)
    queue = Queue([a_letter(jobs[0])])
    swept(queue, Store(*jobs), time_left=lambda: MILLISECOND)
    assert queue.hidden == [(names(jobs), timedelta(0))]
