"""The pages of a restored table: which items they ask for, what they leave out, and where the next one begins."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.builders import NOW, a_job
from tidemill.application.ports import OpenGroup, UnreadableItem
from tidemill.application.restore.recover import Page
from tidemill.aws.attribute_values import milliseconds
from tidemill.domain.states import State
from tidemill.dynamodb.document import encode
from tidemill.dynamodb.restore.restored_table import RestoredPages

JOB = a_job()
HEAD = {"pk": {"S": '!head#["t","g"]'}, "sequence": {"N": "1"}, "version": {"S": "1"}}
IDLE = {**HEAD, "expires_at": {"N": "1"}}
PAYLOAD = {"pk": {"S": '!payload#["t","a","item/1"]'}, "stored_at": milliseconds(NOW)}


class Client:
    """Answers each scan with these items."""

    def __init__(self, *items: Any, last: str | None = None) -> None:
        self._answer = {
            "Items": items,
            "ConsumedCapacity": {"CapacityUnits": 2.5},
            **({} if last is None else {"LastEvaluatedKey": {"pk": {"S": last}}}),
        }
        self.requests: list[dict[str, Any]] = []

    def scan(self, **request: Any) -> Any:
        self.requests.append(request)
        return self._answer


def pages(client: Any) -> RestoredPages:
    return RestoredPages(client, table="restored")


READS: dict[str, Callable[[RestoredPages, str | None], Page]] = {
    "live": lambda found, after: found.live(after),
    "accepted": lambda found, after: found.accepted_since(NOW, after),
}


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("last", [None, "a key"])
def test_a_page_has_jobs_and_groups_and_says_where_the_next_begins(read: str, last: str | None) -> None:
    client = Client(encode(JOB), HEAD, IDLE, PAYLOAD, {"pk": {"S": "torn"}}, last=last)

    page = READS[read](pages(client), None)

    job, group, torn = page.found
    assert (job, group) == (JOB, OpenGroup("t", "g"))
    assert isinstance(torn, UnreadableItem)
    assert (page.cursor, page.read_units) == (last, 2.5)


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("after", [None, "a key"])
def test_a_page_begins_after_the_last_key_of_the_one_before(read: str, after: str | None) -> None:
    client = Client()

    READS[read](pages(client), after)

    (request,) = client.requests
    assert request.get("ExclusiveStartKey") == (None if after is None else {"pk": {"S": after}})
    assert (request["TableName"], request["ReturnConsumedCapacity"]) == ("restored", "TOTAL")


def test_live_jobs_are_those_that_are_not_over_and_the_dead_ones() -> None:
    client = Client()

    pages(client).live(None)

    (request,) = client.requests
    states = {value["S"] for name, value in request["ExpressionAttributeValues"].items() if name != ":group"}
    assert states == {*State} - {State.SUCCEEDED, State.CANCELLED, State.EXPIRED}
    assert request["ExpressionAttributeValues"][":group"] == {"S": "!head#"}
    assert request["ExpressionAttributeNames"] == {"#state": "state", "#pk": "pk"}
    expression = request["FilterExpression"]
    assert all(name in expression for name in request["ExpressionAttributeValues"])
    assert expression.endswith(") OR begins_with(#pk, :group)")


def test_accepted_jobs_are_those_that_were_submitted_since_a_time() -> None:
    client = Client()

    pages(client).accepted_since(NOW, None)

    (request,) = client.requests
    assert request["FilterExpression"] == "attribute_exists(#state) AND #created_at >= :since"
    assert request["ExpressionAttributeNames"] == {"#state": "state", "#created_at": "created_at"}
    assert request["ExpressionAttributeValues"] == {":since": milliseconds(NOW)}
