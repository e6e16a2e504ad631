"""Records of the stream of a table."""

from typing import Any

from tests.simulation.conformance.case import TABLE, Aws, code
from tests.simulation.conformance.citations import DYNAMODB, GUIDE, STREAMS, cites
from tests.simulation.conformance.simulated_aws import Simulated

FIVE_YEARS_SECONDS = 5 * 365 * 86_400


def changes(aws: Aws) -> list[Any]:
    return [record["dynamodb"] for record in aws.records()]


@cites(STREAMS, "MODIFY - one or more of an existing item's attributes were modified.")
def test_a_stream_has_a_record_of_each_change(aws: Aws) -> None:
    aws.put("a", n={"N": "1"})
    aws.put("a", n={"N": "2"})
    aws.dynamodb.delete_item(TableName=TABLE, Key={"pk": {"S": "a"}})
    assert [record["eventName"] for record in aws.records()] == ["INSERT", "MODIFY", "REMOVE"]


@cites(STREAMS, "NEW_AND_OLD_IMAGES - both the new and the old item images of the item.")
def test_a_record_has_the_item_before_and_after(aws: Aws) -> None:
    aws.put("a", n={"N": "1"})
    aws.update("a", "SET n = :n", ExpressionAttributeValues={":n": {"N": "2"}})
    aws.dynamodb.delete_item(TableName=TABLE, Key={"pk": {"S": "a"}})
    first, second = ({"pk": {"S": "a"}, "n": {"N": str(number)}} for number in (1, 2))
    images = [(change.get("OldImage"), change.get("NewImage")) for change in changes(aws)]
    assert images == [(None, first), (first, second), (second, None)]


@cites(STREAMS, "The primary key attribute(s) for the DynamoDB item that was modified.")
def test_a_record_names_its_item(aws: Aws) -> None:
    aws.put("a", n={"N": "1"})
    assert [change["Keys"] for change in changes(aws)] == [{"pk": {"S": "a"}}]


@cites(
    GUIDE + "Streams.html",
    "If you perform a PutItem or UpdateItem operation that does not change any data in an item, DynamoDB "
    "Streams does not write a stream record for that operation.",
)
def test_a_write_that_changes_nothing_has_no_record(aws: Aws) -> None:
    for _ in range(3):
        aws.put("a", n={"N": "1"})
    aws.update("a", "SET n = :n", ExpressionAttributeValues={":n": {"N": "1"}})
    assert len(aws.records()) == 1


@cites(
    GUIDE + "Streams.html",
    "Whenever an application creates, updates, or deletes items in the table, DynamoDB Streams writes a stream record "
    "with the primary key attributes of the items that were modified.",
)
def test_a_refused_write_has_no_record(aws: Aws) -> None:
    item = {"pk": {"S": "a"}}
    refused = code(
        lambda: aws.dynamodb.put_item(TableName=TABLE, Item=item, ConditionExpression="attribute_exists(pk)")
    )
    assert refused == "ConditionalCheckFailedException"
    aws.dynamodb.delete_item(TableName=TABLE, Key=item)
    assert aws.records() == []


@cites(GUIDE + "Streams.html", "Each stream record appears exactly once in the stream.")
def test_each_item_of_a_transaction_has_its_record(aws: Aws) -> None:
    entries = [{"Put": {"TableName": TABLE, "Item": {"pk": {"S": name}}}} for name in "abc"]
    aws.dynamodb.transact_write_items(TransactItems=entries)
    assert sorted(change["Keys"]["pk"]["S"] for change in changes(aws)) == ["a", "b", "c"]


@cites(
    GUIDE + "Streams.html",
    "For each item that is modified in a DynamoDB table, the stream records appear in the same sequence as "
    "the actual modifications to the item.",
)
def test_the_records_of_an_item_are_in_order(aws: Aws) -> None:
    for number in range(20):
        aws.put("a", n={"N": str(number)})
        aws.put("b", n={"N": str(number)})
    told = [change for change in changes(aws) if change["Keys"]["pk"]["S"] == "a"]
    assert [int(change["NewImage"]["n"]["N"]) for change in told] == list(range(20))
    numbers = [int(change["SequenceNumber"]) for change in told]
    assert numbers == sorted(set(numbers))


@cites(STREAMS, 'For Time To Live, the type is "Service".')
def test_a_ttl_delete_is_marked(simulated: Simulated) -> None:
    now_ms = simulated.scheduler.now_ms
    simulated.put("a", expires_at={"N": str(now_ms // 1000 - 60)})
    for key in list(simulated.table.expired(now_ms)):
        simulated.table.put(key, None, now_ms=now_ms, by_ttl=True)
    record = simulated.records()[-1]
    assert record["eventName"] == "REMOVE"
    assert record["userIdentity"] == {"type": "Service", "principalId": "dynamodb.amazonaws.com"}


@cites(
    DYNAMODB,
    "Items that have expired and not been deleted will still show up in reads, queries, and scans.",
)
def test_an_expired_item_is_readable_until_it_is_deleted(simulated: Simulated) -> None:
    now_ms = simulated.scheduler.now_ms
    simulated.put("a", expires_at={"N": str(now_ms // 1000 - 60)})
    assert simulated.get("a") is not None
    assert list(simulated.table.expired(now_ms)) == [("a",)]


@cites(
    GUIDE + "time-to-live-ttl-before-you-start.html",
    "The TTL attribute value must be a datetimestamp with an expiration of no more than five years in the past.",
)
def test_an_item_that_expired_long_ago_is_kept(simulated: Simulated) -> None:
    now_ms = simulated.scheduler.now_ms
    simulated.put("a", expires_at={"N": str(now_ms // 1000 - FIVE_YEARS_SECONDS - 60)})
    simulated.put("b", expires_at={"N": str(now_ms // 1000 + 60)})
    simulated.put("c", expires_at={"S": str(now_ms // 1000 - 60)})
    assert list(simulated.table.expired(now_ms)) == []
