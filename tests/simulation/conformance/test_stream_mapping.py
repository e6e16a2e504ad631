"""What Lambda does with a stream, and with what a function answers."""

from typing import Any

import pytest

from tests.simulation.conformance.bench import TABLE, Simulated, failing
from tests.simulation.conformance.cited import DYNAMODB, GUIDE, LAMBDA, LAMBDA_GUIDE, STREAMS, cites
from tests.simulation.world.faults import Fault
from tests.simulation.world.stream_mapping import matches

STREAM_FAILURES = LAMBDA_GUIDE + "services-ddb-batchfailurereporting.html"


@cites(STREAMS, "MODIFY - one or more of an existing item's attributes were modified.", moto=False)
def test_a_stream_tells_what_became_of_an_item(simulated: Simulated) -> None:
    seen: list[Any] = []
    simulated.stream(lambda event: seen.extend(event["Records"]))
    simulated.put("a", n={"N": "1"})
    simulated.put("a", n={"N": "2"})
    simulated.dynamodb.delete_item(TableName=TABLE, Key={"pk": {"S": "a"}})
    simulated.sleep(5)
    assert [record["eventName"] for record in seen] == ["INSERT", "MODIFY", "REMOVE"]
    assert seen[1]["dynamodb"]["OldImage"]["n"] == {"N": "1"}
    assert seen[1]["dynamodb"]["NewImage"]["n"] == {"N": "2"}
    assert "NewImage" not in seen[2]["dynamodb"]


@cites(
    GUIDE + "Streams.html",
    "If you perform a PutItem or UpdateItem operation that does not change any data in an item, DynamoDB "
    "Streams does not write a stream record for that operation.",
    moto=False,
)
def test_a_write_that_changes_nothing_is_not_told(simulated: Simulated) -> None:
    seen: list[Any] = []
    simulated.stream(lambda event: seen.extend(event["Records"]))
    for _ in range(3):
        simulated.put("a", n={"N": "1"})
    simulated.sleep(5)
    assert len(seen) == 1


@cites(
    GUIDE + "Streams.html",
    "For each item that is modified in a DynamoDB table, the stream records appear in the same sequence as "
    "the actual modifications to the item.",
    moto=False,
)
def test_the_records_of_an_item_come_in_order(simulated: Simulated) -> None:
    seen: list[int] = []

    def handle(event: Any) -> None:
        seen.extend(int(record["dynamodb"]["NewImage"]["n"]["N"]) for record in event["Records"])

    simulated.stream(handle, batch_size=3)
    for number in range(20):
        simulated.put("a", n={"N": str(number)})
    simulated.sleep(20)
    assert seen == list(range(20))


@cites(STREAMS, 'For Time To Live, the type is "Service".', moto=False)
def test_what_the_ttl_deletes_says_so(simulated: Simulated) -> None:
    seen: list[Any] = []
    simulated.stream(lambda event: seen.extend(event["Records"]))
    simulated.put("a", expires_at={"N": "1"})
    now_ms = simulated.scheduler.now_ms
    for key in list(simulated.table.expired(now_ms)):
        simulated.table.put(key, None, now_ms=now_ms, by_ttl=True)
    simulated.sleep(5)
    assert seen[-1]["eventName"] == "REMOVE"
    assert seen[-1]["userIdentity"] == {"type": "Service", "principalId": "dynamodb.amazonaws.com"}


@cites(
    DYNAMODB,
    "Items that have expired and not been deleted will still show up in reads, queries, and scans.",
    moto=False,
)
def test_what_has_expired_is_there_until_it_is_deleted(simulated: Simulated) -> None:
    simulated.put("a", expires_at={"N": "1"})
    assert simulated.get("a") is not None
    assert list(simulated.table.expired(simulated.scheduler.now_ms)) == [("a",)]


@cites(STREAMS, "In DynamoDB Streams, there is a 24 hour limit on data retention.", moto=False)
def test_a_stream_forgets_after_a_day(simulated: Simulated) -> None:
    seen: list[Any] = []
    function = simulated.stream(lambda event: seen.extend(event["Records"]), oldest_seconds=10**9)
    weather = simulated.world.weather
    weather.calm, weather.rates = False, {Fault.NOT_STARTED: 1.0}
    simulated.table.put(("a",), {"pk": {"S": "a"}}, now_ms=simulated.scheduler.now_ms - 25 * 3_600_000)
    simulated.sleep(5)
    weather.calm = True
    simulated.sleep(5)
    assert seen == []
    assert function.behind == 0


@cites(
    STREAM_FAILURES,
    "If the batchItemFailures array contains multiple items, Lambda uses the record with the lowest sequence "
    "number as the checkpoint. Lambda then retries all records starting from that checkpoint.",
    moto=False,
)
def test_a_stream_goes_on_from_the_lowest_failure(simulated: Simulated) -> None:
    batches: list[list[str]] = []

    def handle(event: Any) -> Any:
        names = [record["dynamodb"]["SequenceNumber"] for record in event["Records"]]
        batches.append(names)
        return failing(names[3], names[1]) if len(batches) == 1 else None

    simulated.stream(handle)
    for number in range(4):
        simulated.put("a", n={"N": str(number)})
    simulated.sleep(20)
    assert batches[1][0] == batches[0][1]
    assert batches[1][-1] == batches[0][3]


@cites(
    LAMBDA,
    "BisectBatchOnFunctionError - If the function returns an error, split the batch in two and retry.",
    moto=False,
)
def test_an_error_halves_the_batch(simulated: Simulated) -> None:
    sizes: list[int] = []
    done: list[str] = []

    def handle(event: Any) -> None:
        sizes.append(len(event["Records"]))
        values = [record["dynamodb"]["NewImage"]["n"]["N"] for record in event["Records"]]
        if "2" in values:
            raise RuntimeError
        done.extend(values)

    simulated.stream(handle, retries=2)
    for number in range(4):
        simulated.put("a", n={"N": str(number)})
    simulated.sleep(60)
    assert sizes[:2] == [4, 2]
    assert sorted(done) == ["0", "1", "3"]


@cites(LAMBDA, "MaximumRetryAttempts - Discard records after the specified number of retries.", moto=False)
def test_a_poison_record_is_given_up_and_told_of(simulated: Simulated) -> None:
    calls: list[int] = []

    def handle(_event: Any) -> None:
        calls.append(1)
        raise RuntimeError

    simulated.stream(handle, retries=2)
    simulated.put("a")
    simulated.sleep(60)
    assert len(calls) == 3
    assert [letter.body for letter in simulated.letters.messages] == ['{"DDBStreamBatchInfo":{}}']


@cites(LAMBDA, "MaximumRecordAgeInSeconds - Discard records older than the specified age.", moto=False)
def test_an_old_record_is_given_up(simulated: Simulated) -> None:
    def handle(_event: Any) -> None:
        raise RuntimeError

    mapping = simulated.stream(handle, retries=10_000, oldest_seconds=60)
    simulated.put("a")
    simulated.sleep(300)
    assert mapping.behind == 0
    assert len(simulated.letters.messages) == 1


@cites(
    LAMBDA_GUIDE + "with-ddb.html",
    "The maximum number of times that Lambda retries when the function returns an error. This doesn't apply to"
    " service errors or throttles where the batch didn't reach the function.",
    moto=False,
)
def test_throttles_do_not_count_as_tries(simulated: Simulated) -> None:
    seen: list[Any] = []
    simulated.stream(lambda event: seen.extend(event["Records"]), retries=1)
    weather = simulated.world.weather
    weather.calm, weather.rates = False, {Fault.NOT_STARTED: 1.0}
    simulated.put("a")
    simulated.sleep(30)
    weather.calm = True
    simulated.sleep(120)
    assert len(seen) == 1


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ({"dynamodb": {"NewImage": {"state": {"S": ["queued", "dead"]}}}}, True),
        ({"dynamodb": {"NewImage": {"state": {"S": ["running"]}}}}, False),
        ({"dynamodb": {"NewImage": {"group": {"S": [{"exists": True}]}}}}, False),
        ({"dynamodb": {"NewImage": {"group": {"S": [{"exists": False}]}}}}, True),
        ({"dynamodb": {"OldImage": {"state": {"S": ["queued"]}}}}, False),
        ({"eventName": ["INSERT"], "dynamodb": {"NewImage": {"state": {"S": [{"prefix": "que"}]}}}}, True),
        ({"dynamodb": {"NewImage": {"state": {"S": [{"anything-but": ["queued"]}]}}}}, False),
    ],
)
@cites(
    LAMBDA_GUIDE + "invocation-eventfiltering.html",
    "For Lambda to consider the event a match, the event must contain all the field names included in a filter.",
    moto=False,
)
def test_filters_let_through_what_fits(simulated: Simulated, pattern: Any, expected: bool) -> None:
    record = {"eventName": "INSERT", "dynamodb": {"NewImage": {"state": {"S": "queued"}}}}
    assert matches([pattern], record) is expected


@cites(
    LAMBDA_GUIDE + "with-ddb.html",
    "Lambda will process each record at least once, but doesn't guarantee that each record will be processed "
    "only once.",
    moto=False,
)
def test_a_stream_may_deliver_a_batch_again(simulated: Simulated) -> None:
    seen: list[Any] = []
    simulated.stream(lambda event: seen.extend(event["Records"]))
    weather = simulated.world.weather
    weather.calm, weather.rates = False, {Fault.STREAM_REPEATED: 0.6}
    for number in range(10):
        simulated.table.put(("a",), {"pk": {"S": "a"}, "n": {"N": str(number)}}, now_ms=simulated.scheduler.now_ms)
        simulated.sleep(2)
    assert len(seen) > 10
