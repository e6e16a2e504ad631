"""The documents of the nodes of a flow: how a node starts, how it is marked or cancelled, and what is read for that."""

import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import NOW, SECOND, TENANT, an_error, with_changes
from tests.support.in_memory_flows import FLOW_ID, InMemoryFlows, nodes
from tidemill.application.flows.flow_nodes import NodeDocuments, TooLargeError, waits_for
from tidemill.application.ports import Unreadable, ignore_unreadable
from tidemill.domain.errors import MalformedDocumentError, TransactionConflictError, WriteRefusedError
from tidemill.domain.flows.flow_place import FlowPlace, Mark
from tidemill.domain.flows.flows import NODES_KEPT, NodeVerdict, Resolution
from tidemill.domain.history import Why
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.dynamodb import document
from tidemill.names import Lane


def flow_of(*of_nodes: dict[str, Any], **types: Any) -> InMemoryFlows:
    """Nothing has been started yet."""
    flows = InMemoryFlows(of_nodes)
    stored = json.loads(flows.flow.payload.text or "")
    flows.documents[FLOW_ID] = with_changes(flows.flow, payload=json.dumps(stored | {"types": types}))
    return flows


def documents_of(flows: InMemoryFlows, *, after: timedelta = timedelta(0), **most: int) -> NodeDocuments:
    return NodeDocuments(flows.flow, replace(flows.parts, clock=lambda: NOW + after), **most)


@pytest.mark.parametrize(
    ("node", "facts", "job"),
    [
        ({}, {}, {"lane": Lane.DEFAULT, "payload": "{}", "group": None, "tags": (), "useful_until": None}),
        ({}, {"lane": "bulk"}, {"lane": Lane.BULK}),
        ({"lane": "bulk"}, {"lane": "critical"}, {"lane": Lane.BULK}),
        ({"payload": {"n": 1}, "tags": ["b", "a"]}, {}, {"payload": '{"n":1}', "tags": ("a", "b")}),
        ({"group": "g"}, {"blocks": True}, {"group": "g", "blocks": True}),
        ({}, {"max_age_seconds": 60}, {"useful_until": NOW + 60 * SECOND}),
        ({"max_age_seconds": 30}, {"max_age_seconds": 60}, {"useful_until": NOW + 30 * SECOND}),
        ({}, {"retention_seconds": 60}, {"retention": NODES_KEPT}),
        ({}, {"retention_seconds": 86_400 * 200}, {"retention": timedelta(days=200)}),
    ],
)
def test_a_node_starts_as_it_was_asked_for_and_as_its_type_was_then(
    node: dict[str, Any], facts: dict[str, Any], job: dict[str, Any]
) -> None:
    flows = flow_of({"name": "a"} | node, **{"test.node": facts})

    started = documents_of(flows).carry_out(0, NodeVerdict.START)

    assert started is not None
    assert {name: document.value_of(started, name) for name in job} == job
    assert (started.type, started.state, started.flow) == ("test.node", State.QUEUED, FlowPlace(id=FLOW_ID, node="a"))


@pytest.mark.parametrize(
    ("after", "days", "kept"),
    [
        (timedelta(days=90), 0, timedelta(days=30)),
        (timedelta(days=90), 30, timedelta(days=30)),
        (timedelta(days=90), 31, timedelta(days=31)),
    ],
)
def test_no_document_of_a_node_expires_before_its_flow(after: timedelta, days: int, kept: timedelta) -> None:
    flows = flow_of({"name": "a"}, **{"test.node": {"retention_seconds": days * 86_400}})

    started = documents_of(flows, after=after).carry_out(0, NodeVerdict.START)

    assert started is not None
    assert started.lifetime.retention == kept


@pytest.mark.parametrize(
    ("said", "mark", "cause"),
    [(NodeVerdict.SKIP, Mark.SKIPPED, "skipped"), (NodeVerdict.BLOCK, Mark.BLOCKED, "blocked")],
)
def test_a_mark_is_a_document_that_no_worker_runs(said: NodeVerdict, mark: Mark, cause: str) -> None:
    node = {"name": "a", "group": "g", "payload": {"n": 1}, "max_age_seconds": 60}
    flows = flow_of(node, **{"test.node": {"blocks": True, "retention_seconds": 86_400 * 200}})

    marked = documents_of(flows, after=SECOND).carry_out(0, said)

    assert marked is not None
    assert (marked.flow, marked.state) == (FlowPlace(id=FLOW_ID, node="a", mark=mark), State.CANCELLED)
    assert (marked.payload.text, marked.group.key, marked.group.blocks) == ("{}", None, False)
    assert (marked.due, marked.run_at, marked.lifetime.useful_until) == (None, None, None)
    assert (marked.finished_at, marked.lifetime.expires_at) == (NOW + SECOND, NOW + SECOND + timedelta(days=200))
    assert [(each.at, each.state, str(each.cause)) for each in marked.history] == [
        (NOW + SECOND, State.CANCELLED, cause)
    ]


def marked(flows: InMemoryFlows, name: str, said: NodeVerdict) -> NodeDocuments:
    documents = documents_of(flows)
    documents.carry_out(documents.nodes.graph.numbers[name], said)
    return documents_of(flows)


def test_a_blocked_node_starts_or_is_skipped_and_is_not_blocked_again() -> None:
    flows = flow_of({"name": "a"})
    documents = marked(flows, "a", NodeVerdict.BLOCK)
    assert documents.may_start(0)
    assert documents.carry_out(0, NodeVerdict.BLOCK) is None
    assert flows.inserted == ["a"]

    started = documents.carry_out(0, NodeVerdict.START)

    assert started is not None
    assert documents.resolution(0) is Resolution.PENDING
    assert not documents.may_start(0)
    assert flows.inserted == ["a", "a"]


def test_a_blocked_node_is_skipped_if_it_is_not_needed_any_more() -> None:
    flows = flow_of({"name": "a"})
    documents = marked(flows, "a", NodeVerdict.BLOCK)
    assert documents.may_start(0)
    assert documents.carry_out(0, NodeVerdict.SKIP) is not None
    assert flows.states() == {"a": "skipped"}


def test_a_node_that_is_known_to_be_blocked_costs_no_write(monkeypatch: pytest.MonkeyPatch) -> None:
    flows = flow_of({"name": "a"})
    documents = marked(flows, "a", NodeVerdict.BLOCK)
    documents.read([0])
    monkeypatch.setattr(flows, "put_away", None)
    assert documents.carry_out(0, NodeVerdict.BLOCK) is None


def test_a_second_start_of_a_node_starts_nothing() -> None:
    flows = flow_of({"name": "a"})
    assert documents_of(flows).carry_out(0, NodeVerdict.START) is not None

    documents = documents_of(flows)
    assert documents.carry_out(0, NodeVerdict.START) is None
    kept = documents.document(0)
    assert kept is not None
    assert flows.inserted == ["a"]


def test_a_node_that_another_version_started_in_its_own_way_stays() -> None:
    flows = flow_of({"name": "a"})
    first = documents_of(flows).carry_out(0, NodeVerdict.START)
    assert first is not None
    flows.documents[first.id] = replace(first, body_hash="1" * 64, state=State.SUCCEEDED)

    documents = documents_of(flows)
    other = flows.documents.pop(first.id)
    documents.read([0])
    flows.documents[first.id] = other
    assert documents.carry_out(0, NodeVerdict.START) is None
    assert documents.resolution(0) is Resolution.SUCCEEDED


def test_the_contents_of_a_node_are_not_kept_in_memory() -> None:
    flows = flow_of({"name": "a"})
    job = documents_of(flows).carry_out(0, NodeVerdict.START)
    assert job is not None
    heavy: dict[str, Any] = {"result": "{}", "checkpoint": "{}", "errors": (an_error(),), "history": job.history}
    flows.documents[job.id] = with_changes(job, payload='{"n":1}', **heavy)
    documents = documents_of(flows)

    kept = documents.document(0)

    without: Any = dict.fromkeys(("payload", "result", "checkpoint", "undo"))
    assert kept == with_changes(job, steps=(), history=(), errors=(), **without)


class Partly(InMemoryFlows):
    """A store that cannot read the documents of some nodes."""

    unread: frozenset[str] = frozenset()

    def get_many(self, keys: Sequence[tuple[str, str]], *, unreadable: Unreadable = ignore_unreadable) -> list[Job]:
        for tenant, job_id in keys:
            if job_id in self.unread:
                unreadable(tenant, job_id, MalformedDocumentError("of a newer version"))
        return [job for job in super().get_many(keys) if job.id not in self.unread]


def test_a_node_with_a_document_that_cannot_be_read_is_left_alone() -> None:
    flows = Partly(nodes(a=[]))
    job = documents_of(flows).carry_out(0, NodeVerdict.START)
    assert job is not None
    flows.unread = frozenset({job.id})
    documents = documents_of(flows)

    assert documents.document(0) is None
    assert not documents.may_start(0)
    assert documents.resolution(0) is Resolution.PENDING
    documents.cancel([0])
    assert flows.documents[job.id].state is State.QUEUED

    flows.unread = frozenset()
    documents.read([0], again=True)
    assert documents.document(0) is not None
    flows.documents.pop(job.id)
    documents.read([0], again=True)
    assert documents.may_start(0)


def test_a_document_is_read_once_unless_it_is_asked_for_anew() -> None:
    flows = flow_of({"name": "a"}, {"name": "b"})
    documents = documents_of(flows)
    documents.read([0, 1])
    documents.read([0, 1])
    documents.document(0)
    assert flows.calls["documents"] == 2

    documents.read([1], again=True)
    assert flows.calls["documents"] == 3
    flows.calls.clear()
    documents_of(flows).document(1)
    assert flows.calls["documents"] == 1


@pytest.mark.parametrize(("most", "fits"), [(2, True), (1, False)])
def test_an_advance_reads_as_many_documents_as_it_may(most: int, fits: bool) -> None:
    flows = flow_of({"name": "a"}, {"name": "b"})
    documents = documents_of(flows, most=most)
    documents.read([0])
    documents.read([0])
    if fits:
        documents.read([1])
        with pytest.raises(TooLargeError):
            documents.read([1], again=True)
    else:
        with pytest.raises(TooLargeError):
            documents.read([1])
    assert flows.calls["documents"] == most


CANCEL = {"by": "owner", "reason": f"its flow {FLOW_ID} was cancelled"}


class Cancels(InMemoryFlows):
    """Notes the cancels of jobs, and refuses those of some."""

    def __init__(self, of_nodes: Sequence[dict[str, Any]]) -> None:
        super().__init__(of_nodes)
        self.cancelled: list[tuple[Job, dict[str, object]]] = []
        self.refusal: Exception | None = None

    def cancel(self, job: Job, **audit: object) -> Job:
        if self.refusal:
            raise self.refusal
        self.cancelled.append((job, audit))
        return super().cancel(job)


@pytest.mark.parametrize(
    ("changes", "cancelled"),
    [
        ({"state": State.QUEUED}, True),
        ({"state": State.RUNNING}, True),
        ({"state": State.RUNNING, "cancel_requested_at": NOW}, False),
        ({"state": State.PARKED, "cancel_requested_at": NOW}, True),
        ({"state": State.DEAD}, True),
        ({"state": State.SUCCEEDED}, False),
        ({"state": State.EXPIRED}, False),
        ({"state": State.CANCELLED}, False),
        ({"state": State.CANCELLED, "flow": FlowPlace(id=FLOW_ID, node="a", mark=Mark.SKIPPED)}, False),
    ],
)
def test_the_cancel_of_a_flow_cancels_the_jobs_that_live_or_are_dead(changes: dict[str, Any], cancelled: bool) -> None:
    flows = Cancels(nodes(a=[]))
    job = documents_of(flows).carry_out(0, NodeVerdict.START)
    assert job is not None
    flows.documents[job.id] = with_changes(job, result="kept by the store", **changes)
    documents = documents_of(flows, after=SECOND)

    documents.cancel([0])

    whole = with_changes(job, result="kept by the store", **changes)
    assert flows.cancelled == ([(whole, CANCEL | {"now": NOW + SECOND})] if cancelled else [])
    assert flows.inserted == ["a"]


@pytest.mark.parametrize("blocked", [False, True])
def test_the_cancel_of_a_flow_leaves_a_document_for_a_node_without_a_job(blocked: bool) -> None:
    flows = Cancels(nodes(a=[]))
    if blocked:
        marked(flows, "a", NodeVerdict.BLOCK)

    documents_of(flows, after=SECOND).cancel([0])

    job = flows.node("a")
    assert job is not None
    assert (job.state, job.flow, job.finished_at) == (State.CANCELLED, FlowPlace(id=FLOW_ID, node="a"), NOW + SECOND)
    assert job.cancel.request is not None
    assert {"by": job.cancel.request.by, "reason": job.cancel.request.reason} == CANCEL
    assert [each.cause for each in job.history] == [Why.CANCELLED]
    assert flows.cancelled == []
    assert not documents_of(flows).may_start(0)


def test_the_cancel_of_a_node_that_was_deleted_is_left_to_the_store(monkeypatch: pytest.MonkeyPatch) -> None:
    flows = Cancels(nodes(a=[]))
    job = documents_of(flows).carry_out(0, NodeVerdict.START)
    assert job is not None
    documents = documents_of(flows)
    documents.read([0])
    monkeypatch.setattr(flows, "get", lambda *_: None)

    documents.cancel([0])

    ((asked, _),) = flows.cancelled
    assert asked.id == job.id


@pytest.mark.parametrize("refusal", [WriteRefusedError("cancel", None), TransactionConflictError("busy")])
def test_the_cancel_of_a_flow_goes_on_after_a_node_that_cannot_be_cancelled(refusal: Exception) -> None:
    flows = Cancels(nodes(a=[], b=[]))
    documents_of(flows).carry_out(0, NodeVerdict.START)
    flows.refusal = refusal

    documents_of(flows).cancel([0, 1])

    assert flows.states() == {"a": "queued", "b": "cancelled"}


def test_the_cancel_of_a_flow_ends_with_its_time() -> None:
    flows = Cancels(nodes(a=[], b=[], c=[]))
    left = iter([True, False])

    documents_of(flows).cancel([0, 1, 2], in_time=lambda: next(left))

    assert flows.states() == {"a": "cancelled", "b": "cancelled"}


def test_the_first_parents_that_have_not_ended_are_named() -> None:
    flows = InMemoryFlows(nodes(a=[], b=[], c=[], d=["a", "b", "c"]))
    flows.look_at_all()
    flows.end("a")
    documents = documents_of(flows)
    documents.read(range(4))
    assert waits_for(documents, 3, most=5) == ["b", "c"]
    assert waits_for(documents, 3, most=1) == ["b"]
    assert waits_for(documents, 0, most=5) == []


class Asked(InMemoryFlows):
    """Refuses the first requests to look."""

    refusals: Sequence[Exception] = ()

    def look(self, flow: Job, **now: Any) -> None:
        super().look(flow, **now)
        if self.looks <= len(self.refusals):
            raise self.refusals[self.looks - 1]


CHANGED = WriteRefusedError("look", None)
CONFLICT = TransactionConflictError("nodes are added to it")


@pytest.mark.parametrize(
    ("changes", "refusals", "looks"),
    [
        ({}, [], 1),
        ({}, [CHANGED] * 50, 51),
        ({}, [CONFLICT] * 19, 20),
        ({"state": State.DEAD}, [], 0),
        ({"state": State.SUCCEEDED}, [], 0),
        (None, [], 0),
    ],
)
def test_only_a_flow_that_is_alive_is_asked_to_look(
    changes: dict[str, Any] | None, refusals: Sequence[Exception], looks: int
) -> None:
    flows = Asked(nodes(a=[]))
    flows.refusals = refusals
    if changes is None:
        flows.documents.pop(FLOW_ID)
    else:
        flows.documents[FLOW_ID] = with_changes(flows.flow, **changes)

    flows.parts.ask_to_look(TENANT, FLOW_ID)

    assert flows.looks == looks


def test_a_flow_that_others_write_each_time_is_not_asked_for_ever() -> None:
    flows = Asked(nodes(a=[]))
    flows.refusals = [CONFLICT] * 20
    with pytest.raises(TransactionConflictError):
        flows.parts.ask_to_look(TENANT, FLOW_ID)


def test_the_id_of_a_node_belongs_to_one_flow() -> None:
    flows = flow_of({"name": "a"})
    later = NodeDocuments(replace(flows.flow, created_at=NOW + SECOND), flows.parts)
    assert documents_of(flows).job_id(0) != later.job_id(0)
