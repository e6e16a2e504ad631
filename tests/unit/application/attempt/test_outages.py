"""Long outages, hour by hour: a lane with a backlog of two days, and a stream that is lost for three."""

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest

from tests.support.builders import NOW, a_job, a_job_type, claimed, types_of
from tests.support.faulty_client import FaultyClient
from tests.support.in_memory_owed_work import InMemoryOwedWork
from tests.support.single_job import INVOCATION, Clock, Inline, carried_out, tools
from tidemill.application.attempt.attempt import Attempt
from tidemill.application.dispatch.nudge import LONGEST_BETWEEN_NUDGES, LaneDelay, no_delay
from tidemill.application.features.publisher_features import publisher
from tidemill.application.operations.reconcile import Reconciler
from tidemill.application.ports import Refusal
from tidemill.application.waiting.wake import Waker
from tidemill.domain.dispatch.dispatch import Dispatch
from tidemill.domain.dispatch.job_message import DeadLetter, Reference
from tidemill.domain.dispatch.stream_change import Change
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.dynamodb.job_store import DynamoJobStore
from tidemill.names import Lane

HOUR = timedelta(hours=1)


@dataclass
class Mill:
    """One lane, on which a run takes `hours_a_job`, with publish, wake and reconcile."""

    store: DynamoJobStore
    client: FaultyClient
    hours_a_job: int = 0
    lane_delay: LaneDelay | None = None
    stream_is_down: bool = False
    clock: Clock = field(default_factory=Clock)
    queue: deque[tuple[datetime, Reference | DeadLetter]] = field(default_factory=deque)
    sent: int = 0
    runs: Counter[str] = field(default_factory=Counter)
    #: The jobs as publish last saw them, or would have.
    seen: dict[str, Job | None] = field(default_factory=dict)
    busy_until: datetime = NOW
    _written: bool = False

    def __post_init__(self) -> None:
        self.client.watch = self._watch
        types = types_of(a_job_type(lambda _payload, run: self.runs.update([run.job_id])))
        self.tools = tools(self.store, types, self.clock)
        self.publisher = publisher(
            store=self.store, payloads=Inline(), lanes=self, owed=InMemoryOwedWork(), clock=self.clock
        )
        self.waker = Waker(store=self.store, clock=self.clock, pause=lambda _seconds: None)
        self.reconciler = Reconciler(
            store=self.store, clock=self.clock, limit=HOUR, lane_delay=self.lane_delay or self.age_of_oldest
        )

    def submit(self, job: Job) -> Job:
        self.store.insert_if_absent(job)
        self.seen[job.id] = None
        return job

    def jobs(self) -> list[Job]:
        return self.store.get_many([(a_job().tenant, job_id) for job_id in self.seen])

    def hour(self) -> None:
        """Advance by an hour: publish the changes, work the lane, and run the scheduled functions."""
        self.publish()
        self.work()
        self.publish()
        self.clock.now += HOUR
        self.waker.wake(time_left=timedelta(minutes=1))
        for job in list(self.reconciler.overdue()):
            self.reconciler.nudge(job)

    def publish(self) -> None:
        while self._written:
            self._written = False
            changed = [job for job in self.jobs() if job != self.seen[job.id]]
            changes = [Change(job.id, self.seen[job.id], job) for job in changed]
            self.seen |= {job.id: job for job in changed}
            if not self.stream_is_down:
                assert not self.publisher.publish(changes).failed

    def send(self, dispatches: Sequence[Dispatch]) -> Sequence[Refusal]:
        """`Lanes`, with one lane."""
        self.sent += len(dispatches)
        self.queue.extend((self.clock.now, dispatch.body) for dispatch in dispatches)
        return ()

    def work(self) -> None:
        """Only a run takes time. A message whose job is done takes none."""
        for _ in range(len(self.queue)):
            if self.clock.now < self.busy_until:
                break
            sent_at, body = self.queue.popleft()
            report = carried_out(Attempt(body, self.tools, deadline=self.clock.now + INVOCATION))
            if report.put_back_until:
                self.queue.append((sent_at, body))
            elif report.job_is_terminal:
                self.busy_until = self.clock.now + self.hours_a_job * HOUR

    def age_of_oldest(self, _lane: Lane) -> timedelta:
        """The age of the oldest message, as CloudWatch reports it."""
        return self.clock.now - self.queue[0][0] if self.queue else timedelta(0)

    def _watch(self, applied: bool) -> None:
        self._written |= applied

    def states(self) -> set[State]:
        return {job.state for job in self.jobs()}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lane_delay", "most_sent"),
    [
        pytest.param(None, 16, id="which its age explains"),
        # Nudged after 1, 3, 7, 15 and 31 hours.
        pytest.param(no_delay, 16 * 6, id="which nothing explains"),
    ],
)
def test_an_hourly_reconcile_does_not_stop_a_backlog_of_48_hours_from_draining(
    store: DynamoJobStore, client: FaultyClient, lane_delay: LaneDelay | None, most_sent: int
) -> None:
    mill = Mill(store, client, hours_a_job=3, lane_delay=lane_delay)
    for _ in range(16):
        mill.submit(a_job())

    for _ in range(48):
        mill.hour()

    assert mill.states() == {State.SUCCEEDED}
    assert set(mill.runs.values()) == {1}
    assert mill.sent <= most_sent


@pytest.mark.slow
def test_no_job_is_lost_when_the_stream_is_lost_for_72_hours(store: DynamoJobStore, client: FaultyClient) -> None:
    mill = Mill(store, client, stream_is_down=True)
    mill.submit(a_job())
    lost_run = mill.submit(a_job())
    claimed(store, lost_run)
    mill.submit(a_job(state=State.SCHEDULED, due=NOW + 5 * HOUR, run_at=NOW + 5 * HOUR))
    for _ in range(3):
        mill.submit(a_job(group="in order"))
    for hour in range(72):
        if hour % 6 == 0:
            mill.submit(a_job(created_at=mill.clock.now, due=mill.clock.now))
        mill.hour()
    assert not mill.runs

    mill.stream_is_down = False
    hours = 0
    while mill.states() != {State.SUCCEEDED}:
        mill.hour()
        hours += 1

    assert set(mill.runs) == set(mill.seen)
    assert set(mill.runs.values()) == {1}
    assert hours * HOUR <= LONGEST_BETWEEN_NUDGES + 2 * HOUR
