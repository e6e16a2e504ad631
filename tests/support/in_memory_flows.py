"""Flows over a dictionary of documents: every call counts, and a test ends the jobs of nodes as it likes."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from tests.support.builders import NOW, TENANT, a_job, with_changes
from tidemill.application.features import submit_features
from tidemill.application.flows.flow_advance import FlowAdvance
from tidemill.application.flows.flow_graphs import FlowGraphs
from tidemill.application.flows.flow_look import FlowLook, Looked
from tidemill.application.flows.flow_nodes import FlowParts
from tidemill.application.job_types import JobTypes
from tidemill.application.ports import Unreadable, ignore_unreadable
from tidemill.application.submission.job_ids import node_job_id
from tidemill.domain.errors import WriteRefusedError
from tidemill.domain.flows.flow_cursor import Cursor
from tidemill.domain.flows.flow_place import Mark
from tidemill.domain.job import Job, Redrive
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.in_memory.single_job import Inline
from tidemill.names import FLOW_TYPE

FLOW_ID = "flow"


class InMemoryFlows(Inline):
    """`FlowStore`, `SubmitStore`, `ControlStore` and `Payloads` of one flow, with its nodes as in the HTTP API."""

    def __init__(self, nodes: Sequence[Mapping[str, object]]) -> None:
        payload = json.dumps({"nodes": [{"type": "test.node"} | dict(node) for node in nodes], "types": {}})
        flow = a_job(id=FLOW_ID, type=FLOW_TYPE, payload=payload, state=State.PARKED)
        self.documents: dict[str, Job] = {FLOW_ID: flow}
        self.moved: dict[int, Cursor] = {}
        self.additions: list[str] = []
        self.calls: Counter[str] = Counter()
        #: The names of the nodes whose documents were written, in order, as a stream tells it.
        self.inserted: list[str] = []
        self.looks = 0
        self.parts = FlowParts(
            flows=self,
            jobs=self,
            submit=submit_features.submit(
                store=self, payloads=self, job_types=JobTypes({}), clock=lambda: NOW, new_id=lambda: "unused"
            ),
            graphs=FlowGraphs(store=self, payloads=self),
            clock=lambda: NOW,
        )

    @property
    def flow(self) -> Job:
        return self.documents[FLOW_ID]

    def advance(self, *names: str) -> list[str]:
        """The names of the nodes that started."""
        jobs = FlowAdvance(self.parts).advance(TENANT, FLOW_ID, names)
        return [job.flow.node for job in jobs if job.flow]

    def look_at_all(self) -> Looked:
        return FlowLook(self.parts)(self.flow, lambda: True)

    def node(self, name: str) -> Job | None:
        return self.documents.get(node_job_id(self.flow, name))

    def end(self, name: str, state: State = State.SUCCEEDED) -> None:
        job = self.node(name)
        assert job is not None
        assert not job.state.terminal
        self.documents[job.id] = replace(job, state=state, finished_at=NOW, due=None)

    def states(self) -> dict[str, str]:
        nodes = (job for job in self.documents.values() if job.flow)
        return {job.flow.node: str(job.flow.mark or job.state) for job in nodes if job.flow}

    def get(self, _tenant: str, job_id: str) -> Job | None:
        self.calls["get"] += 1
        return self.documents.get(job_id)

    def get_many(self, keys: Sequence[tuple[str, str]], *, unreadable: Unreadable = ignore_unreadable) -> list[Job]:
        del unreadable
        self.calls["documents"] += len(keys)
        self.calls["get_many"] += 1
        return [self.documents[job_id] for _, job_id in keys if job_id in self.documents]

    def insert_if_absent(self, job: Job, *, batch: Job | None = None) -> Job:
        del batch
        assert job.flow is not None
        found = self.documents.get(job.id)
        blocked = found is not None and found.flow is not None and found.flow.mark is Mark.BLOCKED
        if found is not None and not (blocked and job.flow.mark is not Mark.BLOCKED):
            raise WriteRefusedError("insert_if_absent", found)
        self.calls["insert"] += 1
        self.documents[job.id] = job
        self.inserted.append(job.flow.node)
        return job

    def cancel(self, job: Job, **_audit: object) -> Job:
        self.documents[job.id] = replace(job, state=State.CANCELLED)
        return self.documents[job.id]

    def redrive(self, job: Job, *, token: str = "", by: str = "", **_audit: object) -> Job:
        entry = Redrive(token=token, at=NOW, by=by)
        self.documents[job.id] = replace(job, state=State.QUEUED, due=NOW, redrives=(*job.redrives, entry))
        return self.documents[job.id]

    def signal(self, job: Job, *_signal: object, **_wakes: object) -> Job:
        return job

    def cursors(self, flow: Job, nodes: Sequence[int]) -> Mapping[int, Cursor]:
        del flow
        self.calls["cursors"] += len(nodes)
        return {node: self.moved.get(node, Cursor()) for node in nodes}

    def move(self, flow: Job, node: int, cursor: Cursor) -> Cursor | None:
        del flow
        present = self.moved.get(node)
        if (present.version if present else None) != cursor.version:
            return None
        self.calls["move"] += 1
        self.moved[node] = replace(cursor, version=f"v{self.calls['move']}")
        return self.moved[node]

    def look(self, flow: Job, *, now: datetime) -> None:
        del flow, now
        self.looks += 1

    def added(self, flow: Job, numbers: Sequence[int]) -> Sequence[str]:
        del flow
        return [self.additions[number] for number in numbers if number < len(self.additions)]

    def add(self, flow: Job, addition: str, *, now: datetime) -> Job:
        del now
        self.additions.append(addition)
        self.documents[FLOW_ID] = with_changes(flow, additions=len(self.additions))
        self.looks += 1
        return self.flow


def nodes(**after: Sequence[Any]) -> list[dict[str, Any]]:
    return [{"name": name, "after": list(parents)} for name, parents in after.items()]


def a_fan_in(count: int) -> InMemoryFlows:
    names = [f"p{number}" for number in range(count)]
    flows = InMemoryFlows([*({"name": name} for name in names), {"name": "child", "after": names}])
    flows.look_at_all()
    flows.calls.clear()
    return flows
