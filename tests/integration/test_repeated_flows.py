"""Flows and batches that Python repeats: what was stored counts, and not the form in which the caller gives it."""

from typing import Any

import pytest

from tests.support.job_tables import Table
from tidemill.client import Batch, Flow, Node, Submission, Tidemill
from tidemill.domain.errors import InvalidPayloadError, KeyReusedError


@pytest.fixture
def client(table: Table) -> Tidemill:
    return Tidemill.at(
        table.name, tenant="billing", job_packages=["tests.support.jobs"], client=table.client, listed=False
    )


def node(name: str, payload: Any) -> Node:
    return Node(name, Submission(type="test.scripted", payload=payload))


#: Python that is JSON, but does not equal what is read back.
PAYLOADS = ({"lines": (1, 2)}, {7: "a"}, {"by": {7: "a", "b": 1}})


@pytest.mark.parametrize("payload", PAYLOADS)
def test_nodes_that_are_added_again_change_nothing(client: Tidemill, payload: Any) -> None:
    flow_id = client.start_flow(Flow(nodes=[node("first", {})])).job.id

    assert client.add_nodes(flow_id, [node("more", payload)])
    assert client.add_nodes(flow_id, [node("more", payload)])


def test_a_node_whose_payload_is_another_json_is_another_node(client: Tidemill) -> None:
    flow_id = client.start_flow(Flow(nodes=[node("first", {"paid": 1})])).job.id

    with pytest.raises(InvalidPayloadError, match="the flow has a node 'first' already"):
        client.add_nodes(flow_id, [node("first", {"paid": True})])


@pytest.mark.parametrize("payload", PAYLOADS)
def test_a_flow_and_a_batch_may_be_repeated(client: Tidemill, payload: Any) -> None:
    flow = Flow(nodes=[node("first", payload)], key="order-7")
    batch = Batch(on_success=Submission(type="test.scripted", payload=payload), key="order-7")

    assert [client.start_flow(flow).replayed for _ in range(2)] == [False, True]
    assert [client.open_batch(batch).replayed for _ in range(2)] == [False, True]
    with pytest.raises(KeyReusedError):
        client.start_flow(Flow(nodes=[node("first", {})], key="order-7"))
