"""Keys, sizes, streams and pages of the table, in the forms that DynamoDB gives them."""

from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.support.builders import NOW
from tidemill.domain.admission.governor import Starts
from tidemill.domain.errors import StoreUnavailableError
from tidemill.dynamodb.admission.strain_item import DynamoGovernor
from tidemill.dynamodb.dispatch.stream import of_another_table
from tidemill.dynamodb.history_entries import size_bytes
from tidemill.dynamodb.item_keys import prefixed_key
from tidemill.dynamodb.passes.table_scan import DynamoTableScan

ARN = "arn:aws:dynamodb:eu-west-1:111122223333:table/{}/stream/2045-03-04T05:06:07.891"


def test_a_key_holds_its_parts_unescaped_since_it_has_room_for_two_kilobytes() -> None:
    assert prefixed_key("!head#", "t", "gr\u00fcn#1", 7) == {"pk": {"S": '!head#["t","gr\u00fcn#1",7]'}}


@pytest.mark.parametrize(
    ("value", "size"),
    [
        ({"S": "gr\u00fcn"}, 5),
        ({"B": b"abc"}, 3),
        ({"N": "1000"}, 2),
        ({"N": "1234"}, 3),
        ({"BOOL": True}, 1),
        ({"NULL": True}, 1),
        ({"L": [{"S": "a"}, {"BOOL": False}]}, 7),
        ({"M": {"n": {"S": "a"}}}, 6),
    ],
    ids=str,
)
def test_an_attribute_has_the_size_by_which_dynamodb_charges(value: dict[str, Any], size: int) -> None:
    """See https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html."""
    assert size_bytes({"name": value}) == 4 + size


@pytest.mark.parametrize(
    ("arns", "of_another"),
    [
        ([ARN.format("jobs")], False),
        ([None], False),
        ([], False),
        ([ARN.format("jobs"), ARN.format("jobs-restored")], True),
        ([None, ARN.format("my-jobs")], True),
    ],
)
def test_a_record_says_of_which_table_it_is(arns: list[str | None], of_another: bool) -> None:
    records = [{} if arn is None else {"eventSourceARN": arn} for arn in arns]

    assert of_another_table({"Records": records}, "jobs") is of_another


@pytest.mark.parametrize("last", [None, "t#a"])
def test_a_page_of_a_scan_says_where_the_next_begins(last: str | None) -> None:
    class Client:
        def scan(self, **_request: Any) -> Any:
            more = {} if last is None else {"LastEvaluatedKey": {"pk": {"S": last}}}
            return {"Items": [], "ScannedCount": 9, "ConsumedCapacity": {"CapacityUnits": 1.5}, **more}

    client: Any = Client()
    page = DynamoTableScan(client, table="jobs").page(0, of=1, after=None, overdue_since=NOW)

    assert (page.cursor, page.items, page.read_units, page.found) == (last, 9, 1.5, [])


def test_starts_are_added_four_times_at_most_while_others_are_faster() -> None:
    tries: list[Any] = []

    class Client:
        def update_item(self, **request: Any) -> None:
            tries.append(request)
            raise ClientError({"Error": {"Code": "ConditionalCheckFailedException", "Message": ""}}, "UpdateItem")

    client: Any = Client()

    with pytest.raises(StoreUnavailableError, match="item of the strain"):
        DynamoGovernor(client, table="jobs").add(Starts(), now=NOW)
    assert len(tries) == 4
