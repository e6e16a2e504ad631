"""Reading many items: batches, queries, scans and indexes."""

from typing import Any

from tests.simulation.conformance.bench import INDEX, TABLE, Aws, Simulated, code
from tests.simulation.conformance.cited import DYNAMODB, GUIDE, cites
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


@cites(
    "https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchGetItem.html",
    "ValidationException: Provided list of item keys contains duplicates",
    quoted=False,
)
def test_a_batch_asks_for_a_key_once(aws: Aws) -> None:
    keys = [{"pk": {"S": "a"}}, {"pk": {"S": "a"}}]
    assert code(lambda: aws.dynamodb.batch_get_item(RequestItems={TABLE: {"Keys": keys}})) == "ValidationException"


@cites(DYNAMODB, "A single operation can retrieve up to 16 MB of data, which can contain as many as 100 items.")
def test_a_batch_holds_a_hundred_keys(aws: Aws) -> None:
    keys = [{"pk": {"S": f"item-{number}"}} for number in range(101)]
    assert code(lambda: aws.dynamodb.batch_get_item(RequestItems={TABLE: {"Keys": keys}})) == "ValidationException"


@cites(DYNAMODB, "If a requested item does not exist, it is not returned in the result.")
def test_a_batch_leaves_out_what_is_missing(aws: Aws) -> None:
    aws.put("a")
    keys = [{"pk": {"S": "a"}}, {"pk": {"S": "b"}}]
    answer = aws.dynamodb.batch_get_item(RequestItems={TABLE: {"Keys": keys}})
    assert answer["Responses"][TABLE] == [{"pk": {"S": "a"}}]


@cites(DYNAMODB, "If there are no unprocessed keys remaining, the response contains an empty UnprocessedKeys map.")
def test_a_batch_that_is_whole_leaves_no_keys(aws: Aws) -> None:
    aws.put("a")
    answer = aws.dynamodb.batch_get_item(RequestItems={TABLE: {"Keys": [{"pk": {"S": "a"}}]}})
    assert answer["UnprocessedKeys"] == {}


@cites(
    DYNAMODB,
    "The UnprocessedKeys value is in the same form as RequestItems, so the value can be provided directly to a "
    "subsequent BatchGetItem operation.",
    moto=False,
)
def test_what_a_batch_leaves_can_be_asked_for_as_it_is(simulated: Simulated) -> None:
    fill(simulated, 20)
    asked: Any = {TABLE: {"Keys": [{"pk": {"S": f"item-{number}"}} for number in range(20)], "ConsistentRead": True}}
    weather = simulated.world.weather
    weather.calm, weather.rates = False, {Fault.PARTLY_READ: 0.6}
    found = set()
    while asked:
        answer = simulated.dynamodb.batch_get_item(RequestItems=asked)
        found |= {item["pk"]["S"] for item in answer["Responses"].get(TABLE, [])}
        asked = answer["UnprocessedKeys"]
    assert len(found) == 20
    assert weather.counted[Fault.PARTLY_READ] > 0


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
    assert_shown(aws, {"b"})


def assert_shown(aws: Aws, expected: set[str]) -> None:
    if isinstance(aws, Simulated):
        aws.sleep(1)
    assert names(aws.dynamodb.query(**BLUE)) == expected


@cites(
    GUIDE + "GSI.html",
    "KEYS_ONLY - Each item in the index consists only of the table partition key and sort key values, plus "
    "the index key values.",
)
def test_an_index_of_keys_shows_keys(aws: Aws) -> None:
    fill(aws, 1)
    if isinstance(aws, Simulated):
        aws.sleep(1)
    (item,) = aws.dynamodb.query(**BLUE)["Items"]
    assert set(item) == {"pk", "colour", "size"}


@cites(
    GUIDE + "GSI.html",
    "When an application writes or deletes items in a table, any global secondary indexes on that table are "
    "updated asynchronously, using an eventually consistent model.",
    moto=False,
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
    aws.update("item-0", "REMOVE colour")
    assert_shown(aws, {"item-1"})


@cites(
    DYNAMODB,
    "If ScanIndexForward is true, DynamoDB returns the results in the order in which they are stored (by sort"
    " key value).",
)
def test_a_query_is_sorted_by_number(aws: Aws) -> None:
    for size in (10, 9, 100):
        aws.put(f"item-{size}", colour={"S": "blue"}, size={"N": str(size)})
    if isinstance(aws, Simulated):
        aws.sleep(1)
    sizes = [item["size"]["N"] for item in aws.dynamodb.query(**BLUE)["Items"]]
    assert sizes == ["9", "10", "100"]


@cites(DYNAMODB, "If LastEvaluatedKey is present in the response, you need to paginate the result set.")
def test_a_query_goes_on_from_its_last_key(aws: Aws) -> None:
    fill(aws, 5)
    if isinstance(aws, Simulated):
        aws.sleep(1)
    first = aws.dynamodb.query(**BLUE, Limit=2)
    second = aws.dynamodb.query(**BLUE, Limit=10, ExclusiveStartKey=first["LastEvaluatedKey"])
    assert len(first["Items"]) == 2
    assert names(first) | names(second) == {f"item-{number}" for number in range(5)}
    assert "LastEvaluatedKey" not in second


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


@cites(DYNAMODB, "GetItem provides an eventually consistent read by default.", moto=False)
def test_a_read_may_be_behind_unless_it_is_consistent(simulated: Simulated) -> None:
    simulated.put("a", n={"N": "1"})
    simulated.put("a", n={"N": "2"})
    weather = simulated.world.weather
    weather.calm, weather.rates = False, {Fault.INDEX_LAG: 0.5}
    seen = {simulated.dynamodb.get_item(TableName=TABLE, Key={"pk": {"S": "a"}})["Item"]["n"]["N"] for _ in range(30)}
    assert seen == {"1", "2"}
    assert {(simulated.get("a") or {})["n"]["N"] for _ in range(30)} == {"2"}
