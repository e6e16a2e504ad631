"""A worker whose jobs call a service that is down, for the tests of breakers."""

from typing import Any

from tests.support.builders import INVOCATION, NOW, SECOND, a_job, a_job_type, types_of
from tests.support.faulty_client import FaultyClient
from tests.support.job_tables import Table
from tests.support.single_job import Clock, carried_out, tools
from tidemill import Breaker as Declared
from tidemill import Run
from tidemill.application.attempt.attempt import Attempt
from tidemill.application.attempt.attempt_report import Report
from tidemill.application.breakers.breakers import Breakers
from tidemill.application.waiting.release import Releaser
from tidemill.domain.breakers.breaker import Breaker
from tidemill.domain.dispatch.job_message import reference_to
from tidemill.domain.job import Job
from tidemill.domain.limits.limits import Limit
from tidemill.domain.operations.runtime_configuration import NOTHING_SET
from tidemill.domain.records import replace
from tidemill.dynamodb.breakers.breaker_item import DynamoBreakers
from tidemill.dynamodb.job_store import DynamoJobStore
from tidemill.dynamodb.limits.limits import DynamoLimits

PAYMENTS = Declared("payments", failure_threshold=2, window_seconds=10, probe_seconds=15)


class Downstream:
    """A worker with its own environment, whose handler calls a service that is down while `error` is set."""

    def __init__(
        self, client: FaultyClient, table: Table, store: DynamoJobStore, limits: DynamoLimits, clock: Clock
    ) -> None:
        self.error: Exception | None = TimeoutError("down")
        self.calls = 0
        self.moves: list[tuple[Breaker, Breaker]] = []
        self.clock = clock
        self._store = store
        self.stored = DynamoBreakers(client, table=table.name)  # type: ignore[arg-type]  # a proxy
        self.settings = NOTHING_SET
        self.breakers = Breakers(
            self.stored,
            clock=clock,
            pause=lambda _seconds: None,
            configuration=lambda: self.settings,
            moved=lambda before, after: self.moves.append((before, after)),
        )
        self.type = replace(a_job_type(self._handle, max_attempts=3), depends_on=(PAYMENTS.policy,))
        self._context = replace(tools(store, types_of(self.type), clock), breakers=self.breakers, limits=limits)

    def declare(self, handler: Any, *breakers: Declared) -> None:
        """The type of the jobs from now on."""
        self.type = replace(a_job_type(handler, max_attempts=3), depends_on=tuple(each.policy for each in breakers))
        self._context = replace(self._context, job_types=types_of(self.type))

    def limit_to(self, limit: Limit) -> None:
        """The jobs of the type from now on have this limit."""
        self.type = replace(self.type, limit=limit)
        self._context = replace(self._context, job_types=types_of(self.type))

    @property
    def breaker(self) -> Breaker:
        return self.stored.read("payments", consistent=True)

    @property
    def releaser(self) -> Releaser:
        return self._context.releaser

    def run(self, job: Job) -> Report:
        return carried_out(self.attempt(job))

    def attempt(self, job: Job) -> Attempt:
        return Attempt(reference_to(job), self._context, deadline=self.clock.now + INVOCATION)

    def submit(self, **changes: Any) -> Job:
        job = a_job(due=self.clock.now, **changes)
        self._store.insert_if_absent(job)
        return job

    def fail_twice(self) -> list[Job]:
        jobs = [self.submit(), self.submit(created_at=NOW + SECOND)]
        for job in jobs:
            self.run(job)
        return jobs

    def _handle(self, _payload: Any, _run: Run) -> None:
        self.calls += 1
        if self.error:
            raise self.error

    def fail(self) -> None:
        """One call."""
        self.calls += 1
        raise TimeoutError
