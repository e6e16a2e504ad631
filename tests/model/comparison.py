"""Each step is done to the code that ships and to the reference, and then the two are compared."""

import math
from collections.abc import Callable
from typing import Final

from tests.model import observable_state
from tests.model.model_types import Job, SubmitRequest, Worker
from tests.model.reference_model import Reference
from tests.model.shipped_system import TENANT, ShippedSystem, since_beginning
from tests.model.workers import ShippedWorker, job_types
from tidemill.application.submit import keyed_job_id

#: What jobs may be called that are submitted by key.
NAMES: Final = ("a", "b", "c")
_SOON: Final = 3


class DifferenceError(AssertionError):
    """What ships and the reference have come to different things."""


class Step:
    """One thing that happens: how it is told, and how it is done to either side. Each says what came of it."""

    def __init__(
        self,
        description: str,
        act_on_shipped: Callable[[], object],
        act_on_reference: Callable[[], object] = lambda: None,
        *,
        number: int | None = None,
    ) -> None:
        """`number` is that of the worker who does it."""
        self.description = description
        self.act_on_shipped = act_on_shipped
        self.act_on_reference = act_on_reference
        self.number = number

    def __repr__(self) -> str:
        return self.description


class Comparison:
    """A deployment with a few jobs, and what should become of them."""

    def __init__(self) -> None:
        self.shipped = ShippedSystem(job_types())
        self.shipped.names |= {keyed_job_id(TENANT, name): name for name in NAMES}
        self.reference = Reference(self._chance)
        #: By number, those at work.
        self.shipped_workers: dict[int, ShippedWorker] = {}
        self.workers: dict[int, Worker] = {}
        self.killed_workers: list[ShippedWorker] = []
        self.workers_started = 0
        #: By job, the changes that the stream told last.
        self.published: dict[str, list[tuple[Job | None, Job]]] = {}
        self.requests: list[SubmitRequest] = []
        self.story: list[str] = []

    def apply(self, step: Step) -> None:
        """Raises `DifferenceError`, and whatever the code raises that it should not."""
        self.story.append(step.description)
        before = len(self.workers[step.number].reported) if step.number in self.workers else 0
        reported, expected = step.act_on_shipped(), step.act_on_reference()
        if step.number in self.workers:
            reported, expected = (each[step.number].reported[before:] for each in (self.shipped_workers, self.workers))
            running = self.workers[step.number].job
            self.story[-1] += "".join(f": {came}" for came in reported)
            self.story[-1] += f", and goes on with {running.name}" if running and reported else ""
        elif reported:
            self.story[-1] += f": {reported}"
        found = [] if reported == expected else [f"it was told {reported}, not {expected}"]
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
        """The jobs of whose changes the stream has yet to tell."""
        return list(dict.fromkeys(after.name for _, after in self.reference.stream))

    def next_due(self) -> list[float]:
        """In how many seconds the next things fall due."""
        now, jobs = self.reference.now, self.reference.jobs.values()
        times = {time - now for job in jobs for time in (job.due, job.deadline, job.expires)}
        return sorted(time for time in times if 0 < time < math.inf)[:_SOON]

    def id(self, name: str) -> str:
        return next(job_id for job_id, known in self.shipped.names.items() if known == name)

    def key(self, name: str) -> str:
        """Of its document."""
        return f"{TENANT}#{self.id(name)}"

    def _chance(self, name: str, most: float) -> float:
        """When the store has it that a job is due, if that is no later than it may be."""
        item = self.shipped.table.items.get((self.key(name),), {})
        due = since_beginning(int(item["due"]["N"])) if "due" in item else math.nan
        return due if self.reference.now <= due <= self.reference.now + most else math.nan
