"""A `Settler` whose store gives the answers of a test."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from tests.support.builders import NOW, a_job, a_job_type, reference_to, types_of
from tests.support.one_job import Dropped
from tests.support.single_job import Clock, tools
from tidemill.application.attempt.attempt_report import Report, Unobserved
from tidemill.application.attempt.settle import Settler
from tidemill.domain.attempt.outcomes import Outcome, Settlement
from tidemill.domain.attempt.retry import RetryPolicy
from tidemill.domain.dispatch.job_message import Reference
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.in_memory.single_job import OneJob

RUNNING = a_job(id="job", state=State.RUNNING, attempt=1, owner="mine", generation=4)


class Observer(Unobserved):
    def __init__(self) -> None:
        self.reports: list[tuple[Reference | None, Report]] = []

    def ended(self, reference: Reference | None, report: Report) -> None:
        self.reports.append((reference, report))


class Undeletable(Dropped):
    def delete(self, tenant: str, job_id: str, location: str | None) -> None:
        super().delete(tenant, job_id, location)
        raise OSError("no failure of a delete counts")


class World:
    """A settler whose writes get these answers in turn: an error, or the follow-up jobs that existed."""

    def __init__(self, *answers: Exception | Sequence[Job], job: Job = RUNNING, current: Job | None = None) -> None:
        self.job = job
        self.answers = list(answers)
        self.written: list[Settlement] = []
        self.pauses: list[float] = []
        self.released: list[tuple[datetime, datetime]] = []
        self.observer, self.payloads = Observer(), Undeletable()
        self.store = OneJob(current or job)
        self.release_error: Exception | None = None
        self.store.release = self._release  # type: ignore[method-assign, assignment]  # it answers as the test says
        context = tools(self.store, types_of(a_job_type()), Clock())  # type: ignore[arg-type]  # it needs less
        context = replace(context, pause=self.pauses.append, payloads=self.payloads)
        self.settler = Settler(reference_to(job), context, self.observer, settle=self._settle)

    def _settle(self, job: Job, settlement: Settlement, *, now: datetime, alone: Any) -> Sequence[Job]:
        assert (job, now, alone) == (self.job, NOW, self.store.settle)
        self.written.append(settlement)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _release(self, job: Job, *, now: datetime, due: datetime) -> None:
        assert job == self.job
        if self.release_error:
            raise self.release_error
        self.released.append((now, due))

    def settle(self, outcome: Outcome, policy: RetryPolicy | None = None) -> Report:
        report = self.settler.settle(self.job, outcome, policy or RetryPolicy())
        assert self.observer.reports == [(reference_to(self.job), report)]
        assert self.answers == []
        return report
