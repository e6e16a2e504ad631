"""One job in process, from submit to its end: a clock that the test moves, the stream, a lane, and workers to kill."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from tests.support.builders import INVOCATION, NOW, TENANT, fresh_token
from tests.support.faulty_client import FaultyClient, KilledError
from tests.support.in_memory_dlq import Letters
from tests.support.in_memory_owed_work import InMemoryOwedWork
from tidemill.application.attempt.attempt import Attempt
from tidemill.application.attempt.attempt_context import AttemptContext
from tidemill.application.attempt.attempt_report import Report
from tidemill.application.control.redrive import Redriver
from tidemill.application.dispatch.dead_letter_sweep import sweep
from tidemill.application.features import submit_features
from tidemill.application.features.attempt_features import gates_of
from tidemill.application.features.publisher_features import publisher
from tidemill.application.job_filter import ANY_JOB
from tidemill.application.job_types import JobTypes
from tidemill.application.ports import JobStore, Refusal
from tidemill.application.submission.job_ids import keyed_job_id
from tidemill.domain.dispatch.dispatch import Dispatch
from tidemill.domain.dispatch.job_message import DeadLetter, Reference
from tidemill.domain.dispatch.stream_change import Change
from tidemill.domain.errors import StoreUnavailableError, TransactionConflictError
from tidemill.domain.job import Job
from tidemill.domain.submission.submission import Submission
from tidemill.in_memory.single_job import Inline, Unlimited
from tidemill.powertools.idempotency import insert_once, run_once

#: How long a message stays hidden after its worker was killed.
VISIBILITY: Final = 6 * INVOCATION
#: Time of the test's clock within which every job ends.
PATIENCE: Final = timedelta(hours=2)


@dataclass
class Clock:
    """A clock that stands still until a test moves it."""

    now: datetime = NOW

    def __call__(self) -> datetime:
        return self.now


def tools(store: JobStore, job_types: JobTypes, clock: Clock) -> AttemptContext:
    payloads = Inline()
    return AttemptContext(
        gates=gates_of,
        store=store,
        payloads=payloads,
        limits=Unlimited(),
        job_types=job_types,
        submit=submit_features.submit(
            store=store,
            payloads=payloads,
            job_types=job_types,
            clock=clock,
            new_id=fresh_token,
            insert_once=insert_once,
        ),
        clock=clock,
        new_token=fresh_token,
        draw=lambda: 0.5,
        pause=lambda _seconds: None,
    )


def carried_out(attempt: Attempt) -> Report:
    """Run the attempt as the worker does."""
    try:
        run_once(attempt, remaining=INVOCATION)
    except Exception as error:  # noqa: BLE001
        attempt.unavailable(error)
    assert attempt.report is not None
    return attempt.report


@dataclass(eq=False)
class _Message:
    body: Reference | DeadLetter
    visible_at: datetime


class World:
    """Callers, operators, publish and workers of one job. Each may be killed or lose a response, and then retries."""

    def __init__(self, store: JobStore, client: FaultyClient, job_types: JobTypes) -> None:
        self.clock = Clock()
        self.dead_letters = Letters()
        self.reports: list[Report] = []
        self.messages: list[_Message] = []
        #: One entry for each of the next sends: False kills publish before the queue takes the messages, True after it.
        self.kill_sends: list[bool | None] = []
        self._key = fresh_token()
        self._tools = tools(store, job_types, self.clock)
        self._store = store
        self._publisher = publisher(
            store=store, payloads=self._tools.payloads, lanes=self, owed=InMemoryOwedWork(), clock=self.clock
        )
        self._before: Job | None = None
        self._changes: list[Change] = []
        client.watch = self._watch

    @property
    def job(self) -> Job | None:
        return self._store.get(TENANT, keyed_job_id(TENANT, self._key))

    def submit(self, job_type: str) -> None:
        """Submit as a caller that repeats its request with the same key until it has a response."""
        submission = Submission(type=job_type, key=self._key)
        self._insist(lambda: self._tools.submit(submission, tenant=TENANT, trace="request"))

    def redrive(self) -> None:
        """Redrive as an operator that repeats the command until it succeeds."""

        def command() -> None:
            for job in list(redriver.dead_jobs(ANY_JOB)):
                redriver.redrive(job, by="ada")
            sweep(self.dead_letters, store=self._store, clock=self.clock)

        redriver = Redriver(store=self._store, clock=self.clock, new_token=self._tools.new_token)
        self._insist(command)

    def run_until(self, done: Callable[[], bool]) -> None:
        """Run publish and the workers. When neither has work, move the clock to the next visible message."""
        while not done():
            if not self.step():
                assert self.messages, "the job stands still"
                self.clock.now = min(message.visible_at for message in self.messages)
                assert self.clock.now < NOW + PATIENCE, "the job does not end"

    def step(self) -> bool:
        """Publish one change or work on one visible message. False if neither is possible now."""
        if self._changes:
            self._publish()
        elif ready := [message for message in self.messages if message.visible_at <= self.clock.now]:
            self._work(ready[0])
        else:
            return False
        return True

    def send(self, dispatches: Sequence[Dispatch]) -> Sequence[Refusal]:
        """`Lanes`, with one lane."""
        kill = self.kill_sends.pop(0) if self.kill_sends else None
        if kill is False:
            raise KilledError
        for dispatch in dispatches:
            if isinstance(dispatch.body, DeadLetter):
                self.dead_letters.add(dispatch.body)
            else:
                visible_at = self.clock.now + timedelta(seconds=dispatch.delay_seconds)
                self.messages.append(_Message(dispatch.body, visible_at))
        if kill:
            raise KilledError
        return ()

    def _publish(self) -> None:
        try:
            published = self._publisher.publish(self._changes[:1])
        except KilledError:
            return  # the stream delivers the record again
        assert not published.failed
        del self._changes[0]

    def _work(self, message: _Message) -> None:
        message.visible_at = self.clock.now + VISIBILITY
        attempt = Attempt(message.body, self._tools, deadline=self.clock.now + INVOCATION)
        try:
            report = carried_out(attempt)
        except KilledError:
            return
        self.reports.append(report)
        if report.put_back_until:
            message.visible_at = report.put_back_until
        elif message in self.messages:
            # A receipt of an earlier delivery may still delete the message: SQS gives no guarantee.
            self.messages.remove(message)

    def _insist(self, act: Callable[[], object]) -> None:
        while True:
            try:
                act()
            except (KilledError, StoreUnavailableError, TransactionConflictError):
                continue
            return

    def _watch(self, applied: bool) -> None:
        """Record the change of a write as the stream of the table would."""
        if not applied:
            self._before = self.job
        elif (after := self.job) != self._before:
            self._changes.append(Change("sequence", self._before, after))


__all__ = ["INVOCATION", "VISIBILITY", "Clock", "Inline", "World", "carried_out", "tools"]
