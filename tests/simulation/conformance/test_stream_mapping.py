"""Event source mapping of a stream: batches and responses of the function."""

from typing import Any

import pytest

from tests.simulation.conformance.case import TABLE, failing
from tests.simulation.conformance.citations import GUIDE, LAMBDA, LAMBDA_GUIDE, STREAMS, cites
from tests.simulation.conformance.simulated_aws import Simulated
from tests.simulation.world.faults import Fault
from tests.simulation.world.stream_mapping import matches

STREAM_FAILURES = LAMBDA_GUIDE + "services-ddb-batchfailurereporting.html"
MAPPINGS = LAMBDA_GUIDE + "invocation-eventsourcemapping.html"


@cites(
    GUIDE + "Streams.html",
    "For each item that is modified in a DynamoDB table, the stream records appear in the same sequence as "
    "the actual modifications to the item.",
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


@cites(STREAMS, "In DynamoDB Streams, there is a 24 hour limit on data retention.")
def test_stream_records_expire_after_24_hours(simulated: Simulated) -> None:
    seen: list[Any] = []
    function = simulated.stream(lambda event: seen.extend(event["Records"]), oldest_seconds=10**9)
    simulated.inject(Fault.NOT_STARTED)
    simulated.table.put(("a",), {"pk": {"S": "a"}}, now_ms=simulated.scheduler.now_ms - 25 * 3_600_000)
    simulated.sleep(5)
    simulated.stop_faults()
    simulated.sleep(5)
    assert seen == []
    assert function.behind == 0


@pytest.mark.parametrize("answer", [None, {}, {"batchItemFailures": []}, {"batchItemFailures": None}])
@cites(
    STREAM_FAILURES,
    "Lambda treats a batch as a complete success if you return any of the following: An empty batchItemFailure list. A "
    "null batchItemFailure list. An empty EventResponse. A null EventResponse.",
)
def test_an_empty_answer_passes_the_batch(simulated: Simulated, answer: Any) -> None:
    calls: list[int] = []

    def handle(_event: Any) -> Any:
        calls.append(1)
        return answer

    mapping = simulated.stream(handle)
    simulated.put("a")
    simulated.sleep(60)
    assert (len(calls), mapping.behind) == (1, 0)


@pytest.mark.parametrize("answer", [failing(""), failing(None), {"batchItemFailures": [{"id": "x"}]}])
@cites(
    STREAM_FAILURES,
    "Lambda treats a batch as a complete failure if you return any of the following: An empty string itemIdentifier. A "
    "null itemIdentifier. An itemIdentifier with a bad key name.",
)
def test_a_malformed_answer_repeats_the_batch(simulated: Simulated, answer: Any) -> None:
    calls: list[int] = []

    def handle(_event: Any) -> Any:
        calls.append(1)
        return answer

    simulated.stream(handle, retries=2)
    simulated.put("a")
    simulated.sleep(60)
    assert len(calls) == 3


@cites(
    LAMBDA,
    "The maximum number of records in each batch that Lambda pulls from your stream or queue and sends to your "
    "function.",
)
def test_a_batch_of_records_has_a_size(simulated: Simulated) -> None:
    sizes: list[int] = []
    simulated.stream(lambda event: sizes.append(len(event["Records"])), batch_size=3)
    for number in range(20):
        simulated.table.put(("a",), {"pk": {"S": "a"}, "n": {"N": str(number)}}, now_ms=simulated.scheduler.now_ms)
    simulated.sleep(20)
    assert (sum(sizes), max(sizes)) == (20, 3)


@cites(
    MAPPINGS,
    "By default, if your function returns an error, the event source mapping reprocesses the entire batch until the "
    "function succeeds, or the items in the batch expire. To ensure in-order processing, the event source mapping "
    "pauses processing for the affected shard until the error is resolved.",
)
def test_an_error_blocks_its_shard_only(simulated: Simulated) -> None:
    seen: list[str] = []

    def handle(event: Any) -> None:
        names = [record["dynamodb"]["Keys"]["pk"]["S"] for record in event["Records"]]
        if "a" in names:
            raise RuntimeError
        seen.extend(names)

    mapping = simulated.stream(handle, retries=10_000, oldest_seconds=3600, batch_size=1)
    for name in ("a", "b", "c", "d"):
        simulated.put(name)
    simulated.sleep(600)
    # Two of the four items are in the shard of the first: "a" and "c".
    assert sorted(seen) == ["b", "d"]
    assert mapping.behind == 2


@cites(
    MAPPINGS,
    "For streams, an event source mapping creates an iterator for each shard in the stream and processes items in each "
    "shard in order.",
)
def test_one_batch_of_a_shard_at_a_time(simulated: Simulated) -> None:
    at_work = [0, 0]

    def handle(_event: Any) -> None:
        at_work[0] += 1
        at_work[1] = max(at_work)
        simulated.scheduler.sleep(1_000)
        at_work[0] -= 1

    simulated.stream(handle, batch_size=1)
    for _ in range(3):
        for number in range(4):
            simulated.put("a", n={"N": str(number)})
    simulated.sleep(60)
    assert at_work == [0, 1]


@cites(LAMBDA, "The number of batches to process concurrently from each shard.")
def test_a_factor_lets_batches_of_a_shard_run_at_once(simulated: Simulated) -> None:
    at_work, most = 0, 0

    def handle(_event: Any) -> None:
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        simulated.scheduler.sleep(1_000)
        at_work -= 1

    simulated.stream(handle, batch_size=1, factor=3)
    # The sums of their characters are even, so all of them are in one shard.
    for name in ("bb", "cc", "dd", "ee", "ff", "gg", "hh", "ii", "jj", "kk"):
        simulated.put(name)
    simulated.sleep(60)
    assert (at_work, most) == (0, 3)


@cites(
    LAMBDA_GUIDE + "with-ddb.html",
    "When you increase the number of concurrent batches per shard, Lambda still ensures in-order processing at the "
    "item (partition and sort key) level.",
)
def test_concurrent_batches_keep_the_order_of_each_item(simulated: Simulated) -> None:
    seen: dict[str, list[int]] = {}
    at_work: set[str] = set()

    def handle(event: Any) -> None:
        names = {record["dynamodb"]["Keys"]["pk"]["S"] for record in event["Records"]}
        assert not names & at_work
        at_work.update(names)
        simulated.scheduler.sleep(500)
        at_work.difference_update(names)
        for record in event["Records"]:
            image = record["dynamodb"]["NewImage"]
            seen.setdefault(image["pk"]["S"], []).append(int(image["n"]["N"]))

    simulated.stream(handle, batch_size=2, factor=10)
    for number in range(10):
        for name in "abcdef":
            simulated.put(name, n={"N": str(number)})
    simulated.sleep(60)
    assert seen == {name: list(range(10)) for name in "abcdef"}


@cites(
    LAMBDA_GUIDE + "gettingstarted-features.html",
    "A failure record for an event source mapping contains metadata about the batch, and it points to the items in the "
    "stream.",
)
def test_a_failure_record_does_not_contain_the_item(simulated: Simulated) -> None:
    def handle(_event: Any) -> None:
        raise RuntimeError

    simulated.stream(handle, retries=0)
    simulated.put("secret")
    simulated.sleep(60)
    (dead_letter,) = simulated.dead_letters.messages
    assert "secret" not in dead_letter.body


@cites(
    GUIDE + "transaction-apis.html",
    "Once a transaction completes, the changes made within that transaction are propagated to global secondary indexes "
    "(GSIs), streams, and backups.",
)
def test_a_transaction_may_be_split_in_a_stream(simulated: Simulated) -> None:
    batches: list[list[str]] = []
    simulated.stream(
        lambda event: batches.append([record["dynamodb"]["Keys"]["pk"]["S"] for record in event["Records"]])
    )
    entries = [{"Put": {"TableName": TABLE, "Item": {"pk": {"S": name}}}} for name in "ab"]
    simulated.dynamodb.transact_write_items(TransactItems=entries)
    simulated.sleep(5)
    assert sorted(batches) == [["a"], ["b"]]


@cites(
    STREAM_FAILURES,
    "If the batchItemFailures array contains multiple items, Lambda uses the record with the lowest sequence "
    "number as the checkpoint. Lambda then retries all records starting from that checkpoint.",
)
def test_a_stream_retries_from_the_lowest_failure(simulated: Simulated) -> None:
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


@cites(LAMBDA, "MaximumRetryAttempts - Discard records after the specified number of retries.")
def test_a_poison_record_is_discarded_and_reported(simulated: Simulated) -> None:
    calls: list[int] = []

    def handle(_event: Any) -> None:
        calls.append(1)
        raise RuntimeError

    simulated.stream(handle, retries=2)
    simulated.put("a")
    simulated.sleep(60)
    assert len(calls) == 3
    assert [dead_letter.body for dead_letter in simulated.dead_letters.messages] == ['{"DDBStreamBatchInfo":{}}']


@cites(LAMBDA, "MaximumRecordAgeInSeconds - Discard records older than the specified age.")
def test_an_old_record_is_discarded(simulated: Simulated) -> None:
    def handle(_event: Any) -> None:
        raise RuntimeError

    mapping = simulated.stream(handle, retries=10_000, oldest_seconds=60)
    simulated.put("a")
    simulated.sleep(300)
    assert mapping.behind == 0
    assert len(simulated.dead_letters.messages) == 1


@cites(
    LAMBDA_GUIDE + "with-ddb.html",
    "The maximum number of times that Lambda retries when the function returns an error. This doesn't apply to"
    " service errors or throttles where the batch didn't reach the function.",
)
def test_throttles_do_not_count_as_tries(simulated: Simulated) -> None:
    seen: list[Any] = []
    simulated.stream(lambda event: seen.extend(event["Records"]), retries=1)
    simulated.inject(Fault.NOT_STARTED)
    simulated.put("a")
    simulated.sleep(30)
    simulated.stop_faults()
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
)
def test_filters_pass_matching_records(simulated: Simulated, pattern: Any, expected: bool) -> None:
    record = {"eventName": "INSERT", "dynamodb": {"NewImage": {"state": {"S": "queued"}}}}
    assert matches([pattern], record) is expected


@cites(
    LAMBDA_GUIDE + "with-ddb.html",
    "Lambda will process each record at least once, but doesn't guarantee that each record will be processed "
    "only once.",
)
def test_a_stream_may_deliver_a_batch_again(simulated: Simulated) -> None:
    seen: list[Any] = []
    simulated.stream(lambda event: seen.extend(event["Records"]))
    simulated.inject(Fault.STREAM_REPEATED, 0.6)
    for number in range(10):
        simulated.table.put(("a",), {"pk": {"S": "a"}, "n": {"N": str(number)}}, now_ms=simulated.scheduler.now_ms)
        simulated.sleep(2)
    assert len(seen) > 10
