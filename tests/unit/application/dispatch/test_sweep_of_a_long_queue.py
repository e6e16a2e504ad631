"""The sweep of a dead-letter queue with 100,000 messages: bounded runs reach all, in any order that SQS may choose."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random
from typing import Any

import pytest

from tests.support.builders import NOW, a_job, letter_for, reference_to
from tidemill.application.dispatch.dead_letter_sweep import ROTATING, Swept
from tidemill.application.operations.reconcile import LONGEST_SWEEP, Reconciler
from tidemill.application.passes.table_pass import RESERVE
from tidemill.application.ports import ReceivedDeadLetter, Refusal
from tidemill.domain.dispatch.job_message import DeadLetter, Reference
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.names import RECONCILE_INTERVAL_SECONDS, Lane

#: The most messages of a queue that are hidden at a time:
#: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-queues.html
MOST_HIDDEN = 120_000
MANY = 100_000
INTERVAL = timedelta(seconds=RECONCILE_INTERVAL_SECONDS)
INVOCATION = timedelta(minutes=15)
#: The runs that reach every message: `MANY` divided by `ROTATING.most`, and one more for the rest.
RUNS = 21


@dataclass
class Queue:
    """A standard queue. Each call takes `latency`. A receive returns random visible messages, or the oldest ones."""

    oldest_first: bool
    latency: timedelta
    random: Random = field(default_factory=lambda: Random(7))
    now: datetime = NOW
    messages: list[ReceivedDeadLetter] = field(default_factory=list)
    #: By message id, until when the message is hidden.
    hidden_until: dict[str, datetime] = field(default_factory=dict)
    received: set[str] = field(default_factory=set)
    #: Visible and hidden messages after each call.
    depths: set[int] = field(default_factory=set)
    fewest_visible: int = MANY
    _visible: list[ReceivedDeadLetter] = field(default_factory=list)

    def fill(self, bodies: Sequence[DeadLetter | Reference]) -> None:
        for number, body in enumerate(bodies):
            message = ReceivedDeadLetter(message_id=f"{number:06}", receipt=f"{number}", body=body, sent_at=NOW)
            self.messages.append(message)
        self.become_visible()

    def become_visible(self) -> None:
        """Bring back the messages whose time is over. They come back between runs, never during one."""
        self.hidden_until = {id_: until for id_, until in self.hidden_until.items() if until > self.now}
        self._visible = [message for message in self.messages if message.message_id not in self.hidden_until]
        if self.oldest_first:
            self._visible.reverse()
        else:
            self.random.shuffle(self._visible)

    def receive(self, *, hidden_for: timedelta) -> Sequence[ReceivedDeadLetter]:
        self._call()
        if len(self.hidden_until) > MOST_HIDDEN - 10:
            return []
        found = [self._visible.pop() for _ in range(min(10, len(self._visible)))]
        self.hidden_until |= dict.fromkeys((one.message_id for one in found), self.now + hidden_for)
        self.received.update(one.message_id for one in found)
        self.fewest_visible = min(self.fewest_visible, len(self._visible))
        self.depths.add(len(self._visible) + len(self.hidden_until))
        return found

    def delete(self, dead_letters: Sequence[ReceivedDeadLetter]) -> Sequence[Refusal]:
        gone = {one.message_id for one in dead_letters}
        if gone:
            self._call()
            self.messages = [message for message in self.messages if message.message_id not in gone]
            for id_ in gone:
                self.hidden_until.pop(id_)
        return []

    def hide(self, dead_letters: Sequence[ReceivedDeadLetter], *, duration: timedelta) -> None:
        for _ in range(0, len(dead_letters), 10):
            self._call()
        for one in dead_letters:
            self.hidden_until[one.message_id] = self.now + duration

    def _call(self) -> None:
        self.now += self.latency


class Documents:
    """A store in which every job is dead, except those in `alive`."""

    def __init__(self, queue: Queue, alive: dict[str, Job]) -> None:
        self._queue = queue
        self._alive = alive
        self.nudged: list[str] = []

    def get_many(self, keys: Sequence[tuple[str, str]], **_rest: Any) -> list[Job]:
        self._queue._call()
        return [self._alive.get(job_id) or dead_job(job_id, tenant=tenant) for tenant, job_id in keys]

    def nudge(self, job: Job, **_rest: Any) -> None:
        self.nudged.append(job.id)


def dead_job(job_id: str, **fields: Any) -> Job:
    return a_job(id=job_id, state=State.DEAD, due=None, finished_at=NOW, **fields)


def swept_by(queue: Queue, store: Any) -> Callable[[], tuple[Swept, timedelta]]:
    """One run of the sweep: its result, and the time that it took."""
    reconciler = Reconciler(store=store, clock=lambda: queue.now, limit=timedelta(hours=3))

    def run() -> tuple[Swept, timedelta]:
        queue.become_visible()
        began = queue.now
        reconciled = reconciler.sweep({Lane.DEFAULT: queue}, time_left=lambda: INVOCATION - (queue.now - began))
        return reconciled.dead_letters[Lane.DEFAULT], queue.now - began

    return run


@pytest.mark.parametrize("oldest_first", [True, False])
def test_bounded_runs_reach_each_of_100000_messages(oldest_first: bool) -> None:
    queue = Queue(oldest_first=oldest_first, latency=timedelta(milliseconds=20))
    stranded = {f"{number:06}": a_job(id=f"{number:06}") for number in range(0, MANY, 20_000)}
    dead = letter_for(dead_job("the rest"))
    queue.fill([reference_to(stranded[f"{n:06}"]) if f"{n:06}" in stranded else dead for n in range(MANY)])
    store = Documents(queue, stranded)
    run, runs = swept_by(queue, store), 0
    # The messages of dead jobs arrived a while ago.
    queue.now += timedelta(minutes=5)

    while len(queue.received) < MANY:
        began = queue.now
        swept, took = run()
        runs += 1
        assert took <= LONGEST_SWEEP
        assert len(queue.received) >= min(runs * ROTATING.most, MANY)
        assert swept.unfinished == (swept.kept >= ROTATING.most)
        assert len(queue.hidden_until) < MOST_HIDDEN
        queue.now = began + INTERVAL

    assert runs <= RUNS
    assert sorted(store.nudged) == sorted(stranded)
    assert len(queue.messages) == MANY - len(stranded)


def test_the_depth_that_the_alarm_counts_never_drops_while_messages_exist() -> None:
    queue = Queue(oldest_first=False, latency=timedelta(milliseconds=20))
    queue.fill([letter_for(dead_job("dead"))] * 3)
    run = swept_by(queue, Documents(queue, {}))

    for _ in range(10):
        assert run()[0] == Swept(kept=3)
        queue.now += INTERVAL

    # The visible messages alone would resolve the alarm, and fire it again.
    assert (queue.depths, queue.fewest_visible) == ({3}, 0)


def test_a_short_queue_is_visible_again_after_each_run() -> None:
    queue = Queue(oldest_first=False, latency=timedelta(milliseconds=20))
    queue.fill([letter_for(dead_job("dead"))] * 1_000)

    swept, _ = swept_by(queue, Documents(queue, {}))()

    assert swept == Swept(kept=1_000)
    queue.become_visible()
    assert queue.hidden_until == {}


def test_a_run_with_time_left_ends_at_its_bound_and_leaves_the_rest_visible() -> None:
    queue = Queue(oldest_first=True, latency=timedelta(milliseconds=1))
    queue.fill([letter_for(dead_job("dead"))] * (ROTATING.most + 20))

    swept, took = swept_by(queue, Documents(queue, {}))()

    assert swept == Swept(kept=ROTATING.most, unfinished=True)
    assert took < LONGEST_SWEEP / 2
    assert queue.fewest_visible == 20


@pytest.mark.parametrize("latency", [timedelta(milliseconds=200), timedelta(seconds=2), timedelta(seconds=6)])
def test_a_slow_service_cuts_the_run_short_and_not_its_reserve(latency: timedelta) -> None:
    queue = Queue(oldest_first=True, latency=latency)
    queue.fill([letter_for(dead_job("dead"))] * 5_000)
    run = swept_by(queue, Documents(queue, {}))

    swept, took = run()

    assert swept.unfinished
    assert 0 < swept.kept < 5_000
    assert took <= LONGEST_SWEEP + latency
    assert took < INVOCATION - RESERVE
    # The next run reads others.
    queue.now += INTERVAL
    run()
    assert len(queue.received) >= 2 * swept.kept - 10
