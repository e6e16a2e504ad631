"""A batch of many jobs on the embedded AWS, and its callback. A look reads the pages and the unfinished members."""

from collections import Counter
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

from demo.figures.fan_in_costs import NOOP, TENANT, FanIn, client_of, follow, units
from demo.figures.require import require
from demo.figures.stream_log import StreamLog, size
from tidemill import Submission
from tidemill.client import Accepted, Batch
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.dynamodb.batches.batch_pages import PAGE_PREFIX
from tidemill.dynamodb.document import decode
from tidemill.local.lifecycle import App

#: More make the fewer, larger transactions of a slow machine time out.
_AT_ONCE: Final = 500


class BatchFanIn:
    """One batch on the deployed app."""

    def __init__(self, app: App, log: StreamLog) -> None:
        self._log = log
        self._client = client_of(app)

    def run(self, jobs: int, say: Callable[[str], object]) -> FanIn:
        batch = self._client.open_batch(Batch(on_complete=NOOP)).job
        for start in range(0, jobs, _AT_ONCE):
            each = [
                Submission(type=NOOP.type, payload=NOOP.payload, batch=batch.id, key=f"{batch.id}-{number}")
                for number in range(start, min(start + _AT_ONCE, jobs))
            ]
            answers = self._client.submit_many(each)
            refused = [answer for answer in answers if not isinstance(answer, Accepted)]
            require(not refused, f"{len(refused)} submissions were refused: {refused[:1]}")
            say(f"submitted {start + len(each):,}")
        self._client.close_batch(batch.id)
        read = _Reader(batch)
        follow(read, self._log, say)
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

    @property
    def has_ended(self) -> bool:
        return self.ended_at is not None

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
            # The pauses between looks are a quarter of the time since the close.
            found.allowed_seconds = max(found.took_seconds / 4, 2) * 1.5 + 10
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
        self._closed_at = self._closed_at or (batch.signals.received[0].at if batch.signals.received else None)
        if batch.state is State.RUNNING and self._state is not State.RUNNING:
            self.found.looks.append(self._read_units())
        self._state = batch.state
        if batch.state.terminal:
            self.ended_at = batch.finished_at

    def _read_units(self) -> int:
        """Read units of a look now: the pages, and the documents of members that no look has seen at an end."""
        ended = sum(len(page[state]["SS"]) for page in self._pages.values() for state in State if state in page)
        pages = sum(units(size(page)) for page in self._pages.values())
        largest = max(self._sizes.values(), default=0)
        return pages + (len(self._members) - ended) * units(largest)
