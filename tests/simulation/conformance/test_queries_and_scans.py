"""Reading many items: batches, queries, scans and indexes."""

from typing import Any

from tests.simulation.conformance.case import INDEX, TABLE, Aws, code
from tests.simulation.conformance.citations import DYNAMODB, GUIDE, cites
from tests.simulation.conformance.simulated_aws import Simulated
from tests.simulation.world.faults import Fault

BLUE: Any = {
    "TableName": TABLE,
    "IndexName": INDEX,
    "KeyConditionExpression": "colour = :c",
    "ExpressionAttributeValues": {":c": {"S": "blue"}},
}


def fill(aws: Aws, count: int) -> None:
    for number in range(count):
        aws.put(f"item-{number}", colour={"S": "blue"}, size={"N": str(number)}, rest={"S": "x"})


def names(answer: Any) -> set[str]:
    return {item["pk"]["S"] for item in answer["Items"]}


def shown(aws: Aws, *expected: str) -> list[Any]:
    """The index entries, once the index shows these items."""
    aws.eventually(lambda: names(aws.dynamodb.query(**BLUE)) == set(expected))
    items: list[Any] = aws.dynamodb.query(**BLUE)["Items"]
    return items


@cites(
    "https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchGetItem.html",
    "ValidationException: Provided list of item keys contains duplicates",
    quoted=False,
)
def test_a_batch_read_rejects_duplicate_keys(aws: Aws) -> None:
    keys = [{"pk": {"S": "a"}}, {"pk": {"S": "a"}}]
    assert code(lambda: aws.dynamodb.batch_get_item(RequestItems={TABLE: {"Keys": keys}})) == "ValidationException"


@cites(DYNAMODB, "A single operation can retrieve up to 16 MB of data, which can contain as many as 100 items.")
def test_a_batch_holds_a_hundred_keys(aws: Aws) -> None:
    keys = [{"pk": {"S": f"item-{number}"}} for number in range(101)]
    assert code(lambda: aws.dynamodb.batch_get_item(RequestItems={TABLE: {"Keys": keys}})) == "ValidationException"


@cites(DYNAMODB, "If a requested item does not exist, it is not returned in the result.")
def test_a_batch_read_omits_missing_items(aws: Aws) -> None:
    aws.put("a")
    keys = [{"pk": {"S": "a"}}, {"pk": {"S": "b"}}]
    answer = aws.dynamodb.batch_get_item(RequestItems={TABLE: {"Keys": keys}})
    assert answer["Responses"][TABLE] == [{"pk": {"S": "a"}}]


@cites(
    DYNAMODB,
    "When designing your application, keep in mind that DynamoDB does not return items in any particular order.",
)
def test_a_batch_is_read_in_any_order(simulated: Simulated) -> None:
    fill(simulated, 20)
    keys = [{"pk": {"S": f"item-{number}"}} for number in range(20)]
    answer = simulated.dynamodb.batch_get_item(RequestItems={TABLE: {"Keys": keys, "ConsistentRead": True}})
    found = [{"pk": item["pk"]} for item in answer["Responses"][TABLE]]
    assert found != keys == sorted(found, key=keys.index)


@cites(DYNAMODB, "If there are no unprocessed keys remaining, the response contains an empty UnprocessedKeys map.")
def test_a_batch_that_is_whole_leaves_no_keys(aws: Aws) -> None:
    aws.put("a")
    answer = aws.dynamodb.batch_get_item(RequestItems={TABLE: {"Keys": [{"pk": {"S": "a"}}]}})
    assert answer["UnprocessedKeys"] == {}


@cites(
    DYNAMODB,
    "The UnprocessedKeys value is in the same form as RequestItems, so the value can be provided directly to a "
    "subsequent BatchGetItem operation.",
)
def test_unprocessed_keys_can_be_requested_as_they_are(simulated: Simulated) -> None:
    fill(simulated, 20)
    asked: Any = {TABLE: {"Keys": [{"pk": {"S": f"item-{number}"}} for number in range(20)], "ConsistentRead": True}}
    simulated.inject(Fault.PARTIAL_BATCH, 0.6)
    found = set()
    while asked:
        answer = simulated.dynamodb.batch_get_item(RequestItems=asked)
        found |= {item["pk"]["S"] for item in answer["Responses"].get(TABLE, [])}
        asked = answer["UnprocessedKeys"]
    assert len(found) == 20
    assert simulated.world.faults.counted[Fault.PARTIAL_BATCH] > 0


@cites(
    DYNAMODB,
    "Global secondary indexes support eventually consistent reads only, so do not specify ConsistentRead when querying "
    "a global secondary index.",
)
def test_an_index_is_not_read_consistently(aws: Aws) -> None:
    assert code(lambda: aws.dynamodb.query(**BLUE, ConsistentRead=True)) == "ValidationException"


@cites(GUIDE + "GSI.html", "A global secondary index only tracks data items where its key attributes actually exist.")
def test_an_item_without_the_key_is_in_no_index(aws: Aws) -> None:
    aws.put("a", colour={"S": "blue"})
    aws.put("b", colour={"S": "blue"}, size={"N": "1"})
    shown(aws, "b")


@cites(
    GUIDE + "GSI.html",
    "KEYS_ONLY - Each item in the index consists only of the table partition key and sort key values, plus "
    "the index key values.",
)
def test_an_index_of_keys_shows_keys(aws: Aws) -> None:
    fill(aws, 1)
    (item,) = shown(aws, "item-0")
    assert set(item) == {"pk", "colour", "size"}


@cites(
    GUIDE + "GSI.html",
    "When an application writes or deletes items in a table, any global secondary indexes on that table are "
    "updated asynchronously, using an eventually consistent model.",
)
def test_an_index_is_behind_its_table(simulated: Simulated) -> None:
    simulated.table._lag = lambda: 5_000
    fill(simulated, 1)
    assert names(simulated.dynamodb.query(**BLUE)) == set()
    simulated.sleep(6)
    assert names(simulated.dynamodb.query(**BLUE)) == {"item-0"}


@cites(
    GUIDE + "GSI.html",
    "If an item was present in the index, but a write to the table caused the indexed attribute to be deleted,"
    " one write is required to delete the old item projection from the index.",
)
def test_an_item_leaves_the_index_with_its_key(aws: Aws) -> None:
    fill(aws, 2)
    shown(aws, "item-0", "item-1")
    aws.update("item-0", "REMOVE colour")
    shown(aws, "item-1")


@cites(
    DYNAMODB,
    "If ScanIndexForward is true, DynamoDB returns the results in the order in which they are stored (by sort"
    " key value).",
)
def test_a_query_is_sorted_by_number(aws: Aws) -> None:
    for size in (10, 9, 100):
        aws.put(f"item-{size}", colour={"S": "blue"}, size={"N": str(size)})
    items = shown(aws, "item-9", "item-10", "item-100")
    assert [item["size"]["N"] for item in items] == ["9", "10", "100"]


@cites(
    DYNAMODB,
    "If ScanIndexForward is false, DynamoDB reads the results in reverse order by sort key value, and then returns the "
    "results to the client.",
)
def test_a_query_may_go_backwards(aws: Aws) -> None:
    fill(aws, 3)
    shown(aws, "item-0", "item-1", "item-2")
    items = aws.dynamodb.query(**BLUE, ScanIndexForward=False)["Items"]
    assert [item["size"]["N"] for item in items] == ["2", "1", "0"]


@cites(DYNAMODB, "COUNT - Returns the number of matching items, rather than the matching items themselves.")
def test_a_query_may_only_count(aws: Aws) -> None:
    fill(aws, 3)
    shown(aws, "item-0", "item-1", "item-2")
    answer = aws.dynamodb.query(**BLUE, Select="COUNT")
    assert answer["Count"] == 3
    assert "Items" not in answer


@cites(DYNAMODB, "If LastEvaluatedKey is present in the response, you need to paginate the result set.")
def test_a_query_continues_from_its_last_key(aws: Aws) -> None:
    fill(aws, 5)
    everything = [f"item-{number}" for number in range(5)]
    shown(aws, *everything)
    first = aws.dynamodb.query(**BLUE, Limit=2)
    second = aws.dynamodb.query(**BLUE, Limit=10, ExclusiveStartKey=first["LastEvaluatedKey"])
    assert len(first["Items"]) == 2
    assert names(first) | names(second) == set(everything)
    assert "LastEvaluatedKey" not in second


@cites(
    "https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_Query.html",
    "ExclusiveStartKey: the primary key of the first item that this operation will evaluate",
    quoted=False,
)
def test_a_query_continues_in_its_order_though_the_last_item_is_gone(aws: Aws) -> None:
    for size, name in enumerate("cab"):
        aws.put(name, colour={"S": "blue"}, size={"N": str(size)})
    shown(aws, "a", "b", "c")
    first = aws.dynamodb.query(**BLUE, Limit=1)
    aws.dynamodb.delete_item(TableName=TABLE, Key={"pk": {"S": "c"}})
    shown(aws, "a", "b")
    second = aws.dynamodb.query(**BLUE, ExclusiveStartKey=first["LastEvaluatedKey"])
    assert [item["pk"]["S"] for item in second["Items"]] == ["a", "b"]


@cites(
    DYNAMODB,
    "If the total size of scanned items exceeds the maximum dataset size limit of 1 MB, the scan completes and results "
    "are returned to the user.",
)
def test_a_page_is_a_megabyte_at_most(aws: Aws) -> None:
    for name in "abcd":
        aws.put(name, text={"S": "x" * 300_000})
    first = aws.dynamodb.scan(TableName=TABLE)
    assert 0 < len(first["Items"]) < 4
    second = aws.dynamodb.scan(TableName=TABLE, ExclusiveStartKey=first["LastEvaluatedKey"])
    assert names(first) | names(second) == set("abcd")


@cites(
    DYNAMODB,
    "A single Scan operation first reads up to the maximum number of items set (if using the Limit parameter)"
    " or a maximum of 1 MB of data and then applies any filtering to the results if a FilterExpression is "
    "provided.",
)
def test_a_filter_applies_after_the_page_is_cut(aws: Aws) -> None:
    fill(aws, 6)
    filtered: Any = {"FilterExpression": "rest = :no", "ExpressionAttributeValues": {":no": {"S": "y"}}}
    answer = aws.dynamodb.scan(TableName=TABLE, Limit=2, **filtered)
    assert answer["Items"] == []
    assert (answer["Count"], answer["ScannedCount"]) == (0, 2)
    assert "LastEvaluatedKey" in answer


@cites(
    DYNAMODB,
    "If ConsistentRead is true, then all of the write operations that completed before the Scan began are guaranteed "
    "to be contained in the Scan response.",
)
def test_a_consistent_scan_has_every_earlier_write(aws: Aws) -> None:
    fill(aws, 5)
    aws.dynamodb.delete_item(TableName=TABLE, Key={"pk": {"S": "item-0"}})
    answer = aws.dynamodb.scan(TableName=TABLE, ConsistentRead=True)
    assert names(answer) == {f"item-{number}" for number in range(1, 5)}


@cites(
    DYNAMODB,
    "For a parallel Scan request, TotalSegments represents the total number of segments into which the Scan "
    "operation will be divided.",
)
def test_segments_part_the_table(aws: Aws) -> None:
    fill(aws, 30)
    found = [
        item["pk"]["S"]
        for segment in range(4)
        for item in aws.dynamodb.scan(TableName=TABLE, Segment=segment, TotalSegments=4)["Items"]
    ]
    assert sorted(found) == sorted(f"item-{number}" for number in range(30))


@cites(DYNAMODB, "GetItem provides an eventually consistent read by default.")
def test_a_read_may_be_behind_unless_it_is_consistent(simulated: Simulated) -> None:
    simulated.put("a", n={"N": "1"})
    simulated.put("a", n={"N": "2"})
    simulated.inject(Fault.INDEX_LAG, 0.5)
    seen = {simulated.dynamodb.get_item(TableName=TABLE, Key={"pk": {"S": "a"}})["Item"]["n"]["N"] for _ in range(30)}
    assert seen == {"1", "2"}
    assert {(simulated.get("a") or {})["n"]["N"] for _ in range(30)} == {"2"}
