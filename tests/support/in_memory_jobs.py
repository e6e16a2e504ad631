"""Jobs in a dictionary, for use cases that submit, find, signal, cancel and redrive a few."""

from collections.abc import Sequence
from typing import Any

from tests.support.builders import NOW, with_changes
from tidemill.application.control.control import Control
from tidemill.application.features import submit_features
from tidemill.application.job_types import JobType, JobTypes
from tidemill.application.submission.submit import Submit
from tidemill.domain.errors import JobFileError, WriteRefusedError
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.waiting.signals import Signal
from tidemill.in_memory.single_job import Inline


class InMemoryJobs(Inline):
    """`SubmitStore`, `ControlStore` and `Payloads`. It notes each write, and refuses those of `refusals` first."""

    def __init__(self, *jobs: Job) -> None:
        self.documents = {(job.tenant, job.id): job for job in jobs}
        self.writes: list[tuple[Any, ...]] = []
        self.refusals: list[Exception] = []

    def get(self, tenant: str, job_id: str) -> Job | None:
        return self.documents.get((tenant, job_id))

    def insert_if_absent(self, job: Job, *, batch: Job | None = None) -> Job:
        if present := self.get(job.tenant, job.id):
            raise WriteRefusedError("insert_if_absent", present)
        self._write("insert", job.id, batch and batch.id)
        return self._kept(job)

    def signal(self, job: Job, signal: Signal, *, wakes: bool) -> Job:
        self._write("signal", job.id, signal.name, signal.data, signal.at, wakes)
        return self._kept(with_changes(job, signals=(*job.signals.received, signal)))

    def cancel(self, job: Job, **audit: Any) -> Job:
        self._write("cancel", job.id, audit)
        return self._kept(replace(job, state=State.CANCELLED, finished_at=NOW))

    def redrive(self, job: Job, **audit: Any) -> Job:
        self._write("redrive", job.id, audit)
        return self._kept(replace(job, state=State.QUEUED, due=NOW))

    def control(self) -> Control:
        return Control(store=self, clock=lambda: NOW, new_token=lambda: "token")

    def submit(self, *types: JobType, faults: Sequence[JobFileError] = ()) -> Submit:
        """With these job types."""
        return submit_features.submit(
            store=self,
            payloads=self,
            job_types=JobTypes({each.name: each for each in types}, faults),
            clock=lambda: NOW,
            new_id=lambda: f"new-{len(self.documents)}",
        )

    def _write(self, *call: Any) -> None:
        if self.refusals:
            raise self.refusals.pop(0)
        self.writes.append(call)

    def _kept(self, job: Job) -> Job:
        self.documents[job.tenant, job.id] = job
        return job
