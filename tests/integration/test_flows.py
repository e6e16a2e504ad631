"""Flows: each node starts once its parents have ended, by the rule of each edge; and the flow ends once all have."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import TENANT
from tests.support.deployed_functions import Mill, forget
from tests.support.documented_job_types import job_types_of
from tests.support.flow_calls import a_flow, added, cancelled, node, on, posted, redriven, seen, skip, states
from tests.support.http_events import call
from tidemill import RetryAfter, Run, Submission, composition
from tidemill.application.flows import flows
from tidemill.application.job_types import JobTypes
from tidemill.application.submission.job_ids import node_job_id
from tidemill.client import Edge, Flow, FlowRefusedError, Node, OnFailure, Tidemill
from tidemill.domain.errors import PermanentJobError, TransactionConflictError
from tidemill.domain.flows import flows as flow_rules
from tidemill.domain.flows.flow_place import NODE_GROUP
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.dynamodb.job_store import DynamoJobStore
from tidemill.entrypoints import control
from tidemill.flow.job import run_flow
from tidemill.names import FLOW_PACKAGE, Env


class Nodes:
    """The scripted handler of nodes: which have run, in order, and which fail."""

    def __init__(self) -> None:
        self.ran: list[str] = []
        self.failing: set[str] = set()
        self.results: dict[str, Any] = {}
        self.during: Callable[[str, Run], None] = lambda _name, _run: None

    def __call__(self, payload: Any, run: Run) -> Any:
        name = payload.node
        self.results[name] = dict(run.parents.items())
        self.during(name, run)
        self.ran.append(name)
        if name in self.failing:
            raise PermanentJobError("as asked")
        return {"of": name}


@pytest.fixture
def nodes(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> Nodes:
    monkeypatch.setenv(Env.JOB_PACKAGES, f"tests.support.jobs,{FLOW_PACKAGE}")
    forget()
    scripted = Nodes()
    mill.script.handler = scripted
    return scripted


def test_each_node_runs_after_its_parents_and_gets_their_results(mill: Mill, nodes: Nodes) -> None:
    flow = a_flow(node("join", "left", "right"), node("left", "root"), node("right", "root"), node("root"))
    mill.run()

    assert (nodes.ran[0], sorted(nodes.ran[1:3]), nodes.ran[3]) == ("root", ["left", "right"], "join")
    assert nodes.results["join"] == {"left": {"of": "left"}, "right": {"of": "right"}}
    job = mill.job(flow)
    assert (job.state, job.result) == (State.SUCCEEDED, '{"succeeded":4}')
    assert set(states(flow).values()) == {"succeeded"}


def test_a_node_without_several_parents_costs_three_writes_and_the_others_one_more(mill: Mill, nodes: Nodes) -> None:
    flow = a_flow(node("a"), node("b", "a"), node("c", "a"), node("d", "b", "c"))
    mill.run()
    # Submit, two claims and settles, a checkpoint for each look, and one request to look.
    of_the_flow = 1 + 2 * 3 + 1
    writes = sum(mill.calls[f"dynamodb.{each}"] for each in ("PutItem", "UpdateItem", "TransactWriteItems"))
    assert (writes - of_the_flow, mill.job(flow).state) == (4 * 3 + 1, State.SUCCEEDED)


@pytest.mark.parametrize(
    ("edge", "child", "end"),
    [("fail", "blocked", "dead"), ("skip", "skipped", "succeeded"), ("continue", "succeeded", "succeeded")],
)
def test_the_edge_says_what_a_failure_means_for_the_child(
    mill: Mill, nodes: Nodes, edge: str, child: str, end: str
) -> None:
    nodes.failing = {"a"}
    flow = a_flow(node("a"), node("b", {"node": "a", "on_failure": edge}), node("c", "b"))
    mill.run()
    assert states(flow) == {"a": "dead", "b": child, "c": child}
    assert mill.job(flow).state == end
    if end == "dead":
        assert mill.job(flow).errors[-1].message.startswith("failed nodes: a;")


def test_a_skipped_parent_lets_a_node_start_that_continues(mill: Mill, nodes: Nodes) -> None:
    nodes.failing = {"a"}
    flow = a_flow(node("a"), node("b", skip("a")), node("c", on("b")), node("d", "b"))
    mill.run()
    assert states(flow) == {"a": "dead", "b": "skipped", "c": "succeeded", "d": "skipped"}
    assert nodes.results["c"] == {"b": None}
    assert (mill.job(flow).state, mill.job(flow).result) == (State.SUCCEEDED, '{"failed":1,"skipped":2,"succeeded":1}')


@pytest.mark.parametrize("order", [["x", "y"], ["y", "x"]])
def test_a_failure_blocks_a_node_that_another_parent_would_skip(mill: Mill, nodes: Nodes, order: list[str]) -> None:
    nodes.failing = {"x", "y"}
    flow = a_flow(*map(node, order), node("z", "x", skip("y")))
    mill.run()
    assert states(flow)["z"] == "blocked"


def test_a_redrive_of_the_flow_goes_on_from_the_failed_node(mill: Mill, nodes: Nodes) -> None:
    nodes.failing = {"b"}
    flow = a_flow(node("a"), node("b", "a"), node("c", "b", "a"), node("d", "c"))
    mill.run()
    assert states(flow) == {"a": "succeeded", "b": "dead", "c": "blocked", "d": "blocked"}

    nodes.failing.clear()
    assert redriven(flow).status == 200
    mill.run()
    assert (mill.job(flow).state, nodes.ran) == (State.SUCCEEDED, ["a", "b", "b", "c", "d"])


def test_a_flow_that_is_redriven_for_months_runs_no_node_again_whose_document_has_expired(
    mill: Mill, nodes: Nodes
) -> None:
    mill.stop_clock()
    nodes.failing = {"b"}
    flow = a_flow(node("a"), node("b", "a"))
    mill.run()
    first = next(each["job_id"] for each in seen(flow).body["nodes"] if each["name"] == "a")
    for _ in range(4):
        mill.late += timedelta(days=29)
        assert redriven(flow).status == 200
        mill.run()
    mill.late += timedelta(days=20)
    expires_at = mill.job(first).lifetime.expires_at
    assert expires_at
    assert expires_at < mill.now()
    mill.table.client.delete_item(TableName=mill.table.name, Key={"pk": {"S": f"{TENANT}#{first}"}})

    assert redriven(flow).status == 200
    mill.run()

    assert nodes.ran.count("a") == 1
    assert mill.job(flow).state is State.DEAD
    assert "120 days" in mill.job(flow).errors[-1].message


def test_a_flow_that_is_redriven_after_ninety_days_goes_on(mill: Mill, nodes: Nodes) -> None:
    mill.stop_clock()
    nodes.failing = {"b"}
    flow = a_flow(node("a"), node("b", "a"), node("c", "b"))
    mill.run()
    for _ in range(3):
        mill.late += timedelta(days=29)
        assert redriven(flow).status == 200
        mill.run()
    mill.late += timedelta(days=13)
    nodes.failing.clear()

    assert redriven(flow).status == 200
    mill.run()

    assert mill.job(flow).state is State.SUCCEEDED


def test_a_node_that_an_operator_redrives_counts_while_the_flow_is_alive(mill: Mill, nodes: Nodes) -> None:
    nodes.failing = {"b"}
    flow = a_flow(node("a"), node("b", "a"), node("c", "a", "b"), node("d", "c"), node("slow", "a"))

    def redrive(name: str, _run: Run) -> None:
        if name == "slow" and nodes.failing:
            mill.publish()
            nodes.failing.clear()
            raise RetryAfter(0)
        if name == "slow":
            dead = next(each for each in seen(flow).body["nodes"] if each["name"] == "b")
            assert states(flow)["c"] == "blocked"
            assert redriven(dead["job_id"]).status == 200

    nodes.during = redrive
    mill.run()
    assert (mill.job(flow).state, nodes.ran[-2:]) == (State.SUCCEEDED, ["c", "d"])


def test_a_redriven_flow_waits_for_a_dead_node_whose_group_is_busy(
    mill: Mill, nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    nodes.failing = {"a"}
    flow = a_flow(node("a") | {"group": "g"})
    mill.run()
    nodes.failing = set()
    redriven(flow)
    redrive, refusals = DynamoJobStore.redrive, [TransactionConflictError("others write the group")]

    def busy_once(self: DynamoJobStore, job: Job, **audit: Any) -> Job:
        if refusals:
            raise refusals.pop()
        return redrive(self, job, **audit)

    monkeypatch.setattr(DynamoJobStore, "redrive", busy_once)
    for part in ("_LONGEST_BUSY_PAUSE", "_BUSY_PAUSE_OF_NODE"):
        monkeypatch.setattr(flow_rules, part, timedelta(0))
    mill.run()
    assert (refusals, mill.job(flow).state) == ([], State.SUCCEEDED)


def test_a_cancel_cancels_the_nodes_that_have_not_ended(mill: Mill, nodes: Nodes) -> None:
    flow = a_flow(node("a"), node("b", "a"), node("c", "b"))

    def cancel(name: str, _run: Run) -> None:
        if name == "a":
            assert cancelled(flow).body["cancel_requested_at"]

    nodes.during = cancel
    mill.run()
    assert (mill.job(flow).state, nodes.ran) == (State.CANCELLED, ["a"])
    assert states(flow) == {"a": "succeeded", "b": "cancelled", "c": "cancelled"}
    # It may be repeated.
    assert cancelled(flow).status == 200
    assert added(flow, node("d")).status == 409


def test_a_blocked_node_can_neither_be_cancelled_nor_superseded(mill: Mill, nodes: Nodes) -> None:
    nodes.failing = {"a"}
    flow = a_flow(node("a"), node("b", "a"))
    mill.run()
    blocked = node_job_id(mill.job(flow), "b")

    cancel = call(control, "POST", f"/jobs/{blocked}/cancel")
    assert (cancel.status, "cancel the flow" in cancel.body["detail"]) == (409, True)
    assert mill.post(supersedes=blocked).status == 409

    nodes.failing.clear()
    assert redriven(flow).status == 200
    mill.run()
    assert (mill.job(flow).state, nodes.ran) == (State.SUCCEEDED, ["a", "a", "b"])


def test_nodes_may_be_added_while_the_flow_runs(mill: Mill, nodes: Nodes) -> None:
    flow = a_flow(node("a"), node("b", "a"))

    def add(name: str, run: Run) -> None:
        if name == "a":
            assert added(str(run.flow), node("c", "a"), node("d", "c", "b")).body["size"] == 4
            assert added(str(run.flow), node("c", "a"), node("d", "c", "b")).body["size"] == 4

    nodes.during = add
    mill.run()
    assert (mill.job(flow).state, sorted(nodes.ran[1:3]), nodes.ran[3]) == (State.SUCCEEDED, ["b", "c"], "d")
    assert added(flow, node("e", "a")).status == 409


@pytest.mark.usefixtures("nodes")
def test_one_call_adds_a_hundred_nodes_at_most() -> None:
    flow = a_flow(node("a"))
    more = [node(f"n{number}", "a") for number in range(101)]

    refused = added(flow, *more)

    assert (refused.status, [error["pointer"] for error in refused.body["errors"]]) == (422, ["#/nodes"])
    assert added(flow, *more[:100]).body["size"] == 101


@pytest.mark.usefixtures("nodes")
def test_a_flow_allows_so_many_additions_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flows, "MOST_ADDITIONS", 2)
    flow = a_flow(node("a"))
    for name in ("b", "c"):
        assert added(flow, node(name)).status == 200

    refused = added(flow, node("d"))

    assert (refused.status, [error["pointer"] for error in refused.body["errors"]]) == (422, ["#/nodes"])
    # The last one again, such as after a lost answer.
    assert added(flow, node("c")).body["size"] == 3


@pytest.mark.usefixtures("nodes")
def test_an_addition_that_hinders_the_progress_costs_the_flow_no_attempt(
    mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    def in_conflict(*_: object, **__: object) -> bool:
        raise TransactionConflictError("others write the document")

    monkeypatch.setattr(DynamoJobStore, "checkpoint", in_conflict)
    flow = a_flow(node("charge"))
    mill.run()
    assert (mill.job(flow).state, mill.job(flow).errors) == (State.SUCCEEDED, ())


def test_each_fault_has_its_path_and_nothing_is_stored(mill: Mill, nodes: Nodes) -> None:
    answer = posted(
        [
            node("a", "b"),
            node("b", "a", "a", "none"),
            node("a"),
            {"name": "no name", "type": "test.unknown"},
            node("n", payload={"n": "text"}),
            node("g") | {"group": NODE_GROUP},
        ]
    )
    assert answer.status == 422
    assert sorted(error["pointer"] for error in answer.body["errors"]) == [
        "#/nodes/1/after/1",
        "#/nodes/1/after/2",
        "#/nodes/2/name",
        "#/nodes/3/name",
        "#/nodes/3/type",
        "#/nodes/4/payload/n",
        "#/nodes/5/group",
    ]
    cycle = posted([node("a", "c"), node("b", "a"), node("c", "b")])
    (error,) = cycle.body["errors"]
    assert (error["pointer"], mill.stored()) == ("#/nodes/1/after/0", 0), error


def test_the_same_key_is_the_same_flow(mill: Mill, nodes: Nodes) -> None:
    first, again = posted([node("a")], key="k"), posted([node("a")], key="k")
    assert (first.status, again.status, first.body["id"]) == (202, 200, again.body["id"])
    assert posted([node("b")], key="k").status == 422


def test_a_large_fan_out_and_fan_in(mill: Mill, nodes: Nodes) -> None:
    middle = [node(f"m{number}", "first") for number in range(220)]
    flow = a_flow(node("first"), *middle, node("last", *(each["name"] for each in middle)))
    mill.run()
    assert mill.job(flow).result == '{"succeeded":222}'
    assert len(nodes.results["last"]) == 220


def test_another_tenant_finds_no_flow(mill: Mill, nodes: Nodes) -> None:
    del mill
    assert seen("unknown").status == 404
    assert added("unknown", node("a")).status == 404
    assert cancelled("unknown").status == 404


def test_the_order_of_the_guide_is_shipped(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> None:
    with job_types_of("flows.md") as known:
        types = JobTypes({name: known.get(name) for name in known.names()} | {run_flow.name: run_flow})
        monkeypatch.setattr(composition, "known_job_types", lambda: types)
        forget()
        mill.stop_clock()
        client = Tidemill.at(
            mill.table.name, tenant=TENANT, job_packages=["flows_md"], client=mill.table.client, listed=False
        )

        def order(card: str) -> Flow:
            def step(name: str, *after: str | Edge) -> Node:
                return Node(name, Submission(type=f"order.{name}", payload={"order": "7", "card": card}), after=after)

            told = step("tell", Edge(node="ship", on_failure=OnFailure.CONTINUE))
            return Flow(nodes=[step("charge"), step("reserve"), step("ship", "charge", "reserve"), told], key=card)

        paid, refused = (client.start_flow(order(card)).job.id for card in ("valid", "stolen"))
        assert client.start_flow(order("valid")).replayed
        mill.run()
        assert mill.job(paid).result == '{"succeeded":4}'
        assert states(refused) == {"charge": "dead", "reserve": "succeeded", "ship": "blocked", "tell": "blocked"}
        assert not client.add_nodes("another", [])
        assert not client.cancel_flow("another")
        with pytest.raises(FlowRefusedError):
            client.add_nodes(paid, [Node("late", Submission(type="order.tell", payload={"order": "7"}))])


@pytest.mark.usefixtures("nodes")
def test_a_repeated_start_gives_the_size_that_the_flow_has_by_now() -> None:
    flow = posted([node("a")], key="order-7").body["id"]
    added(flow, node("b", "a"))

    repeated = posted([node("a")], key="order-7")

    assert (repeated.status, repeated.body["size"], seen(flow).body["size"]) == (200, 2, 2)
