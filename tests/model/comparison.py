"""Each step is done to the code that ships and to the reference, and then the two are compared."""

import math
from collections.abc import Callable
from typing import Final

from tests.model import observable_state
from tests.model.model_types import Asked, Job, Worker
from tests.model.reference_model import Reference
from tests.model.shipped_system import TENANT, Bench, since_beginning
from tests.model.workers import Hand, job_types
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
        words: str,
        really: Callable[[], object],
        should: Callable[[], object] = lambda: None,
        *,
        number: int | None = None,
    ) -> None:
        """`number` is that of the worker who does it."""
        self.words = words
        self.really = really
        self.should = should
        self.number = number

    def __repr__(self) -> str:
        return self.words


class Both:
    """A deployment with a few jobs, and what should become of them."""

    def __init__(self) -> None:
        self.bench = Bench(job_types())
        self.bench.names |= {keyed_job_id(TENANT, name): name for name in NAMES}
        self.reference = Reference(self._chance)
        #: By number, those at work.
        self.hands: dict[int, Hand] = {}
        self.workers: dict[int, Worker] = {}
        self.killed: list[Hand] = []
        self.hired = 0
        #: By job, the changes that the stream told last.
        self.told: dict[str, list[tuple[Job | None, Job]]] = {}
        self.asked: list[Asked] = []
        self.story: list[str] = []

    def play(self, step: Step) -> None:
        """Raises `DifferenceError`, and whatever the code raises that it should not."""
        self.story.append(step.words)
        before = len(self.workers[step.number].told) if step.number in self.workers else 0
        told, expected = step.really(), step.should()
        if step.number in self.workers:
            told, expected = (each[step.number].told[before:] for each in (self.hands, self.workers))
            running = self.workers[step.number].job
            self.story[-1] += "".join(f": {came}" for came in told)
            self.story[-1] += f", and goes on with {running.name}" if running and told else ""
        elif told:
            self.story[-1] += f": {told}"
        found = [] if told == expected else [f"it was told {told}, not {expected}"]
        store = observable_state.of_store(self.bench, self.hands)
        found += observable_state.differences(store, observable_state.of_reference(self.reference, self.workers))
        if found:
            raise DifferenceError("; ".join(found))
        for done in [number for number, worker in self.workers.items() if not worker.job]:
            del self.workers[done], self.hands[done]

    def close(self) -> None:
        self.bench.over = True
        for hand in (*self.hands.values(), *self.killed):
            hand.goes()

    def untold(self) -> list[str]:
        """The jobs of whose changes the stream has yet to tell."""
        return list(dict.fromkeys(after.name for _, after in self.reference.stream))

    def soon(self) -> list[float]:
        """In how many seconds the next things fall due."""
        now, jobs = self.reference.now, self.reference.jobs.values()
        times = {time - now for job in jobs for time in (job.due, job.deadline, job.expires)}
        return sorted(time for time in times if 0 < time < math.inf)[:_SOON]

    def id(self, name: str) -> str:
        return next(job_id for job_id, known in self.bench.names.items() if known == name)

    def key(self, name: str) -> str:
        """Of its document."""
        return f"{TENANT}#{self.id(name)}"

    def _chance(self, name: str, most: float) -> float:
        """When the store has it that a job is due, if that is no later than it may be."""
        item = self.bench.table.items.get((self.key(name),), {})
        due = since_beginning(int(item["due"]["N"])) if "due" in item else math.nan
        return due if self.reference.now <= due <= self.reference.now + most else math.nan
