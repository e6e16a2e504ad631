"""Each request of a flow has the names and the values that its expressions use, as DynamoDB asks for."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.builders import NOW, a_job, with_changes
from tidemill.domain.flows.flow_cursor import Cursor
from tidemill.domain.states import State
from tidemill.dynamodb.flows.flow_items import DynamoFlows

FLOW = a_job(state=State.RUNNING, owner="t")
CALLS: dict[str, Callable[[DynamoFlows], object]] = {
    "first move": lambda flows: flows.move(FLOW, 0, Cursor(at=1)),
    "later move": lambda flows: flows.move(FLOW, 0, Cursor(at=2, by=1, version="1")),
    "look": lambda flows: flows.look(FLOW, now=NOW),
    "first addition": lambda flows: flows.add(FLOW, "[]", now=NOW),
    "later addition": lambda flows: flows.add(with_changes(FLOW, additions=2), "[]", now=NOW),
}


class Client:
    """Notes each write."""

    def __init__(self) -> None:
        self.writes: list[Any] = []

    def put_item(self, **request: Any) -> None:
        self.writes.append(request)

    update_item = put_item

    def transact_write_items(self, **request: Any) -> None:
        self.writes += [write for entry in request["TransactItems"] for write in entry.values()]


@pytest.mark.parametrize("name", CALLS)
def test_a_request_has_what_its_expressions_use(name: str) -> None:
    client: Any = Client()

    CALLS[name](DynamoFlows(client, table="jobs"))

    assert client.writes
    for write in client.writes:
        used = f"{write.get('UpdateExpression', '')} {write.get('ConditionExpression', '')}"
        assert set(re.findall(r"#\w+", used)) == write.get("ExpressionAttributeNames", {}).keys()
        assert set(re.findall(r":\w+", used)) == write.get("ExpressionAttributeValues", {}).keys()
