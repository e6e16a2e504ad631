"""`python -m demo.figures fan-in` lets 10,000 jobs end in one, and fails unless that one comes into being exactly once.

It submits the jobs of a batch to the embedded AWS, and reads the stream of the table: each write is one record. A look
of the batch reads its pages and the documents of its unfinished members, so the read units follow from the records.
"""

import math
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from demo.figures.require import require
from demo.figures.stream_log import StreamLog, size
from tidemill import Submission
from tidemill.client import Accepted, Batch, Tidemill
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.dynamodb.batch_pages import PAGE_PREFIX
from tidemill.dynamodb.document import decode
from tidemill.local.lifecycle import App, deployed
from tidemill.local.wait import wait_until
from tidemill.names import Env, Output

JOBS: Final = 10_000
TENANT: Final = "fan-in"
PATIENCE_SECONDS: Final = 3_600
JOB_TIMEOUT_SECONDS: Final = 50
FUNCTION_TIMEOUT_SECONDS: Final = 60
#: More make the fewer, larger transactions of a slow machine time out.
_AT_ONCE: Final = 500
_POLL_SECONDS: Final = 2.0
_READ_UNIT_BYTES: Final = 4_096
_NOOP: Final = Submission(type="demo.flaky", payload={"failures": 0})


@dataclass(slots=True)
class FanIn:
    """What one fan-in cost, and what became of it."""

    name: str
    jobs: int = 0
    #: By what was written: `job`, `page`, `end` and `callback`.
    writes: Counter[str] = field(default_factory=Counter)
    #: Of each look, in read units.
    looks: list[int] = field(default_factory=list)
    callbacks: int = 0
    states: Counter[State] = field(default_factory=Counter)
    #: Seconds from the end of the last job to the end of the whole.
    delay_seconds: float = 0.0
    #: Seconds from the close to the end of the last job.
    took_seconds: float = 0.0

    @property
    def faults(self) -> list[str]:
        found = []
        if self.states != {State.SUCCEEDED: self.jobs}:
            found.append(f"the jobs are {dict(self.states)}, not {self.jobs} succeeded")
        if self.callbacks != 1:
            found.append(f"the callback came into being {self.callbacks} times")
        if self.delay_seconds > max(self.took_seconds / 4, 2) * 1.5 + 10:
            found.append(f"the callback came {self.delay_seconds:.0f} s after the last end, a quarter later is allowed")
        return found


class BatchFanIn:
    """One batch on the deployed app."""

    def __init__(self, app: App, log: StreamLog) -> None:
        self._log = log
        self._client = Tidemill.at(
            app.outputs[Output.JOBS_TABLE],
            tenant=TENANT,
            job_packages=["functions.demo_jobs"],
            client=app.client("dynamodb"),
        )

    def run(self, jobs: int, say: Callable[[str], object]) -> FanIn:
        batch = self._client.open_batch(Batch(on_complete=_NOOP)).job
        for start in range(0, jobs, _AT_ONCE):
            each = [
                Submission(type=_NOOP.type, payload=_NOOP.payload, batch=batch.id, key=f"{batch.id}-{number}")
                for number in range(start, min(start + _AT_ONCE, jobs))
            ]
            answers = self._client.submit_many(each)
            refused = [answer for answer in answers if not isinstance(answer, Accepted)]
            require(not refused, f"{len(refused)} submissions were refused: {refused[:1]}")
            say(f"submitted {start + len(each):,}")
        self._client.close_batch(batch.id)
        read = _Reader(batch)

        def ended() -> bool:
            time.sleep(_POLL_SECONDS)
            read.take(self._log)
            say(f"{read.found.states[State.SUCCEEDED]:,} have succeeded, {len(read.found.looks)} looks")
            return read.ended_at is not None

        wait_until(ended, PATIENCE_SECONDS, "the batch to end")
        # A second callback would come meanwhile.
        time.sleep(_POLL_SECONDS)
        read.take(self._log)
        return read.result()


class _Reader:
    """Follows one batch through the records of the table."""

    def __init__(self, batch: Job) -> None:
        self.found = FanIn("batch")
        self.ended_at: datetime | None = None
        self._batch = batch
        self._members: dict[str, Job] = {}
        self._sizes: dict[str, int] = {}
        self._pages: dict[str, Any] = {}
        self._closed_at: datetime | None = None
        self._state = State.QUEUED

    def take(self, log: StreamLog) -> None:
        for key, item in log.read():
            self._record(key, item)
        self.found.states = Counter(job.state for job in self._members.values())

    def result(self) -> FanIn:
        found, ends = self.found, [job.finished_at for job in self._members.values() if job.finished_at]
        found.jobs = len(self._members)
        if self.ended_at and ends and self._closed_at:
            found.delay_seconds = (self.ended_at - max(ends)).total_seconds()
            found.took_seconds = (max(ends) - self._closed_at).total_seconds()
        return found

    def _record(self, key: str, item: Any) -> None:
        if key.startswith(PAGE_PREFIX):
            self.found.writes["page"] += 1
            self._pages[key] = item
            return
        if not key.startswith(f"{TENANT}#") or not item:
            return
        job = decode(item)
        if job.id == self._batch.id:
            self.found.writes["end"] += 1
            self._follow(job)
        elif job.batch == self._batch.id:
            self.found.writes["job"] += 1
            self._members[job.id], self._sizes[job.id] = job, size(item)
        elif job.parent == self._batch.id:
            self.found.writes["callback"] += 1
            self.found.callbacks += job.state is State.QUEUED and job.generation == 1

    def _follow(self, batch: Job) -> None:
        self._closed_at = self._closed_at or (batch.signals[0].at if batch.signals else None)
        if batch.state is State.RUNNING and self._state is not State.RUNNING:
            self.found.looks.append(self._read_units())
        self._state = batch.state
        if batch.state.terminal:
            self.ended_at = batch.finished_at

    def _read_units(self) -> int:
        """As a look reads now: the pages, and the documents of the members that no look has seen at an end."""
        ended = sum(len(page[state]["SS"]) for page in self._pages.values() for state in State if state in page)
        pages = sum(_units(size(page)) for page in self._pages.values())
        largest = max(self._sizes.values(), default=0)
        return pages + (len(self._members) - ended) * _units(largest)


def _units(bytes_: int) -> int:
    return math.ceil(bytes_ / _READ_UNIT_BYTES)


def _give_workers_time(app: App) -> None:
    """As the lanes of `prod` have. A look reads 10,000 documents, for which two seconds may be too short."""
    app.client("lambda").update_function_configuration(
        FunctionName=app.functions["work"], Timeout=FUNCTION_TIMEOUT_SECONDS
    )
    app.set_function_variable("work", Env.JOB_TIMEOUT_SECONDS, str(JOB_TIMEOUT_SECONDS))


def main() -> None:
    console = Console()
    with deployed(console) as app:
        _give_workers_time(app)
        found = [BatchFanIn(app, StreamLog(app)).run(JOBS, lambda text: console.print(text, highlight=False))]
    report(console, found)


def report(console: Console, found: Sequence[FanIn]) -> None:
    """Raises `WaitError` if one of them is not as promised."""
    table = Table("", *(each.name for each in found), title="Fan-in")
    rows: dict[str, Callable[[FanIn], str]] = {
        "jobs": lambda each: f"{each.jobs:,}",
        "table writes per job": lambda each: f"{sum(each.writes.values()) / each.jobs:.2f}",
        "of them to the job, to pages": lambda each: (
            f"{each.writes['job'] / each.jobs:.2f}, {each.writes['page'] / each.jobs:.2f}"
        ),
        "looks": lambda each: str(len(each.looks)),
        "read units of all looks, per job": lambda each: f"{sum(each.looks):,}, {sum(each.looks) / each.jobs:.2f}",
        "from the close to the last end": lambda each: f"{each.took_seconds:.0f} s",
        "from the last end to the callback": lambda each: f"{each.delay_seconds:.1f} s",
        "callbacks": lambda each: str(each.callbacks),
    }
    for title, cell in rows.items():
        table.add_row(title, *map(cell, found))
    console.print(table)
    for each in found:
        require(not each.faults, f"{each.name}: {'; '.join(each.faults)}")
