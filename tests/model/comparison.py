"""Apply each step to the shipped code and to the reference model, then compare the two."""

import math
from collections.abc import Callable
from typing import Final

from tests.model import observable_state
from tests.model.model_types import Job, SubmitRequest, Worker
from tests.model.reference_model import Reference
from tests.model.shipped_system import TENANT, ShippedSystem, since_beginning
from tests.model.workers import ShippedWorker, job_types
from tidemill.application.submission.job_ids import keyed_job_id

#: Idempotency keys of submitted jobs. They name the jobs.
NAMES: Final = ("a", "b", "c")
_SOON: Final = 3


class DifferenceError(AssertionError):
    """The shipped code and the reference model differ."""


class Step:
    """One step: its description, and an action on either side. Both actions return their result."""

    def __init__(
        self,
        description: str,
        act_on_shipped: Callable[[], object],
        act_on_reference: Callable[[], object] = lambda: None,
        *,
        number: int | None = None,
    ) -> None:
        """`number` is the number of the worker that acts, if any."""
        self.description = description
        self.act_on_shipped = act_on_shipped
        self.act_on_reference = act_on_reference
        self.number = number

    def __repr__(self) -> str:
        return self.description


class Comparison:
    """A deployment with a few jobs, and the reference model of it."""

    def __init__(self) -> None:
        self.shipped = ShippedSystem(job_types())
        self.shipped.names |= {keyed_job_id(TENANT, name): name for name in NAMES}
        self.reference = Reference(self._chance)
        #: By number, the workers with a running job.
        self.shipped_workers: dict[int, ShippedWorker] = {}
        self.workers: dict[int, Worker] = {}
        self.killed_workers: list[ShippedWorker] = []
        self.workers_started = 0
        #: By job, the changes that were published last.
        self.published: dict[str, list[tuple[Job | None, Job]]] = {}
        self.requests: list[SubmitRequest] = []
        self.story: list[str] = []

    def apply(self, step: Step) -> None:
        """Raises `DifferenceError`, and every unexpected exception of the code."""
        self.story.append(step.description)
        before = len(self.workers[step.number].reported) if step.number in self.workers else 0
        reported, expected = step.act_on_shipped(), step.act_on_reference()
        if step.number in self.workers:
            reported, expected = (each[step.number].reported[before:] for each in (self.shipped_workers, self.workers))
            running = self.workers[step.number].job
            self.story[-1] += "".join(f": {result}" for result in reported)
            self.story[-1] += f", and goes on with {running.name}" if running and reported else ""
        elif reported:
            self.story[-1] += f": {reported}"
        found = [] if reported == expected else [f"the result is {reported}, not {expected}"]
        store = observable_state.of_store(self.shipped, self.shipped_workers)
        found += observable_state.differences(store, observable_state.of_reference(self.reference, self.workers))
        if found:
            raise DifferenceError("; ".join(found))
        for done in [number for number, worker in self.workers.items() if not worker.job]:
            del self.workers[done], self.shipped_workers[done]

    def close(self) -> None:
        self.shipped.closed = True
        for shipped_worker in (*self.shipped_workers.values(), *self.killed_workers):
            shipped_worker.stop()

    def unpublished(self) -> list[str]:
        """Names of the jobs with unpublished changes."""
        return list(dict.fromkeys(after.name for _, after in self.reference.stream))

    def next_due(self) -> list[float]:
        """Seconds until the next times at which a job changes by itself."""
        now, jobs = self.reference.now, self.reference.jobs.values()
        times = {time - now for job in jobs for time in (job.due, job.deadline, job.expires)}
        return sorted(time for time in times if 0 < time < math.inf)[:_SOON]

    def id(self, name: str) -> str:
        return next(job_id for job_id, known in self.shipped.names.items() if known == name)

    def key(self, name: str) -> str:
        """The key of its document."""
        return f"{TENANT}#{self.id(name)}"

    def _chance(self, name: str, most: float) -> float:
        """The due time in the store, if it is within the allowed range; else NaN, which equals nothing."""
        item = self.shipped.table.items.get((self.key(name),), {})
        due = since_beginning(int(item["due"]["N"])) if "due" in item else math.nan
        return due if self.reference.now <= due <= self.reference.now + most else math.nan
