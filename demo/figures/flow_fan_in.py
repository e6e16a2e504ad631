"""A flow whose last node follows many others, on the embedded AWS. A look reads the documents of all nodes."""

from collections import Counter
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

from demo.figures.fan_in_costs import NOOP, TENANT, FanIn, client_of, follow, units
from demo.figures.stream_log import StreamLog, size
from tidemill.client import Flow, Node
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.dynamodb.document import decode
from tidemill.dynamodb.flows.flow_items import CURSOR_PREFIX
from tidemill.local.lifecycle import App

_LAST: Final = "last"
#: From the end of the last parent to the start of its child. The stream brings it at once, unless it is behind.
_ALLOWED_SECONDS: Final = 60.0


class FlowFanIn:
    """One flow on the deployed app."""

    def __init__(self, app: App, log: StreamLog) -> None:
        self._log = log
        self._client = client_of(app)

    def run(self, jobs: int, say: Callable[[str], object]) -> FanIn:
        # A flow has at most so many nodes, and one is the last.
        parents = [f"n{number}" for number in range(jobs - 1)]
        nodes = [*(Node(name, NOOP) for name in parents), Node(_LAST, NOOP, after=parents)]
        read = _Reader(self._client.start_flow(Flow(nodes=nodes)).job)
        follow(read, self._log, say)
        return read.result()


class _Reader:
    """Follows one flow through the records of the table."""

    def __init__(self, flow: Job) -> None:
        self.found = FanIn("flow", allowed_seconds=_ALLOWED_SECONDS)
        self.has_ended = False
        self._flow = flow
        self._state = State.QUEUED
        self._parents: dict[str, Job] = {}
        self._largest = 1
        self._last_started: datetime | None = None

    def take(self, log: StreamLog) -> None:
        for key, item in log.read():
            self._record(key, item)
        self.found.states = Counter(job.state for job in self._parents.values())

    def result(self) -> FanIn:
        found, ends = self.found, [job.finished_at for job in self._parents.values() if job.finished_at]
        found.jobs = len(self._parents)
        if self._last_started and ends:
            found.delay_seconds = (self._last_started - max(ends)).total_seconds()
            found.took_seconds = (max(ends) - self._flow.created_at).total_seconds()
        return found

    def _record(self, key: str, item: Any) -> None:
        if key.startswith(CURSOR_PREFIX):
            self.found.writes["page"] += 1
            return
        if not key.startswith(f"{TENANT}#") or not item:
            return
        job = decode(item)
        if job.id == self._flow.id:
            self.found.writes["end"] += 1
            self._follow(job)
        elif job.flow and job.flow.id == self._flow.id:
            self._largest = max(self._largest, size(item))
            self._node(job.flow.node, job)

    def _node(self, name: str, job: Job) -> None:
        if name != _LAST:
            self.found.writes["job"] += 1
            self._parents[name] = job
            return
        self.found.writes["callback"] += 1
        if job.state is State.QUEUED and job.generation == 1:
            self.found.callbacks += 1
            self._last_started = job.created_at

    def _follow(self, flow: Job) -> None:
        if flow.state is State.RUNNING and self._state is not State.RUNNING:
            self.found.looks.append((len(self._parents) + 1) * units(self._largest))
        self._state = flow.state
        self.has_ended = flow.state.terminal
