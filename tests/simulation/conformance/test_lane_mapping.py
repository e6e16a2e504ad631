"""Event source mapping of a queue: batches and responses of the function."""

import json
from typing import Any

import pytest

from tests.simulation.conformance.case import Aws, failing
from tests.simulation.conformance.citations import LAMBDA, LAMBDA_GUIDE, cites
from tests.simulation.conformance.simulated_aws import Simulated
from tests.simulation.world.faults import Fault

ERRORS = LAMBDA_GUIDE + "services-sqs-errorhandling.html"


def given_up(aws: Aws, *bodies: object) -> list[str]:
    """The messages that the mapping did not delete, after the function has handled all of them."""
    aws.lane()
    for body in bodies:
        aws.send(json.dumps(body))
    aws.eventually(lambda: aws.counts() == ["0", "0", "0"])
    return [message["Body"] for message in aws.receive(queue_url=aws.dlq_url)]


@cites(ERRORS, "A null batchItemFailures list", moto=False)
def test_an_empty_failure_list_deletes_the_batch(aws: Aws) -> None:
    assert given_up(aws, {"answer": {"batchItemFailures": None}}) == []


@pytest.mark.parametrize("answer", [None, {}, {"batchItemFailures": []}])
@cites(
    ERRORS,
    "Lambda treats a batch as a complete success if your function returns any of the following: An empty "
    "batchItemFailures list. A null batchItemFailures list. An empty EventResponse. A null EventResponse.",
    moto=False,
)
def test_an_empty_answer_deletes_the_batch(aws: Aws, answer: Any) -> None:
    assert given_up(aws, {"answer": answer}) == []


@pytest.mark.parametrize("answer", [failing(""), failing(None), {"batchItemFailures": [{"id": "x"}]}])
@cites(
    ERRORS,
    "Lambda treats a batch as a complete failure if your function returns any of the following: An invalid "
    "JSON response. An empty string itemIdentifier. A null itemIdentifier. An itemIdentifier with a bad key "
    "name.",
    moto=False,
)
def test_a_malformed_answer_keeps_the_batch(aws: Aws, answer: Any) -> None:
    assert len(given_up(aws, {"answer": answer})) == 1


@cites(ERRORS, "An invalid JSON response", moto=False)
def test_a_response_that_is_not_an_object_keeps_the_batch(aws: Aws) -> None:
    assert len(given_up(aws, {"answer": "text"})) == 1


@cites(
    ERRORS,
    "Lambda treats a batch as a complete failure if your function returns any of the following: An "
    "itemIdentifier value with a message ID that doesn't exist",
    moto=False,
)
def test_an_unknown_id_keeps_the_batch(aws: Aws) -> None:
    assert len(given_up(aws, {"answer": failing("nobody")})) == 1


@cites(
    ERRORS,
    "To avoid reprocessing all messages in a failed batch, you can configure your event source mapping to make"
    " only the failed messages visible again.",
    moto=False,
)
def test_only_failed_messages_return(aws: Aws) -> None:
    assert given_up(aws, {"fails": True}, {"fails": False}) == ['{"fails": true}']


@cites(ERRORS, "If your function throws an exception, the entire batch is considered a complete failure.", moto=False)
def test_an_error_keeps_the_batch(aws: Aws) -> None:
    assert len(given_up(aws, {"error": "of its own"})) == 1


@cites(
    LAMBDA_GUIDE + "with-sqs.html",
    "When your function successfully processes a batch, Lambda deletes its messages from the queue.",
    moto=False,
)
def test_a_success_deletes_the_batch(aws: Aws) -> None:
    assert given_up(aws, *({"fails": False} for _ in range(5))) == []


@cites(
    LAMBDA_GUIDE + "with-sqs.html",
    "When your function returns an error, Lambda leaves it in the queue. After the visibility timeout occurs, Lambda "
    "receives the message again.",
)
def test_an_error_keeps_the_batch_until_its_timeout(simulated: Simulated) -> None:
    calls: list[int] = []

    def handle(_event: Any) -> None:
        calls.append(simulated.scheduler.now_ms)
        raise RuntimeError

    simulated.mapped(handle)
    simulated.send("x")
    simulated.sleep(32)
    assert len(calls) == 2
    assert calls[1] - calls[0] >= 29_000


@cites(
    LAMBDA_GUIDE + "services-sqs-configure.html",
    "the function's timeout ends an invocation, and its messages return after the visibility timeout",
    quoted=False,
)
def test_a_function_that_takes_too_long_is_killed(simulated: Simulated) -> None:
    after: list[int] = []

    def handle(_event: Any) -> None:
        simulated.scheduler.sleep(60_000)
        after.append(1)

    simulated.mapped(handle)
    simulated.send("x")
    simulated.sleep(25)
    assert after == []
    assert len(simulated.queue.messages) == 1


@cites(
    LAMBDA,
    "Limits the number of concurrent instances that the Amazon SQS event source can invoke.",
)
def test_no_more_than_the_maximum_run_at_once(simulated: Simulated) -> None:
    at_work = [0, 0]

    def handle(_event: Any) -> None:
        at_work[0] += 1
        at_work[1] = max(at_work)
        simulated.scheduler.sleep(2_000)
        at_work[0] -= 1

    simulated.mapped(handle, batch_size=1, at_once=3)
    for _ in range(12):
        simulated.send("x")
    simulated.sleep(30)
    assert at_work[1] == 3
    assert simulated.queue.messages == []


@cites(
    LAMBDA_GUIDE + "services-sqs-errorhandling.html",
    "If an invocation is throttled, messages return to the queue after the visibility timeout, and their "
    "receive count is up",
    quoted=False,
)
def test_a_throttled_batch_counts_as_a_receive(simulated: Simulated) -> None:
    simulated.inject(Fault.NOT_STARTED)
    simulated.mapped(lambda _event: None)
    simulated.queue.send("x")
    simulated.sleep(5)
    assert simulated.queue.messages[0].receives == 1


@cites(
    LAMBDA_GUIDE + "with-sqs.html",
    "When Lambda reads a batch, the messages stay in the queue but are hidden for the length of the queue's visibility "
    "timeout.",
)
def test_messages_in_a_batch_are_hidden_from_other_workers(simulated: Simulated) -> None:
    began: list[int] = []

    def handle(_event: Any) -> None:
        began.append(1)
        simulated.scheduler.sleep(20_000)

    simulated.mapped(handle)
    simulated.send("x")
    simulated.eventually(lambda: began)
    assert simulated.counts() == ["0", "0", "1"]
    assert simulated.receive() == []


@cites(
    LAMBDA,
    "The maximum number of records in each batch that Lambda pulls from your stream or queue and sends to your "
    "function.",
)
def test_a_batch_of_messages_has_a_size(simulated: Simulated) -> None:
    sizes: list[int] = []
    for _ in range(20):
        simulated.send("x")
    simulated.mapped(lambda event: sizes.append(len(event["Records"])), batch_size=4)
    simulated.send("x")
    simulated.sleep(20)
    assert sum(sizes) == 21
    assert max(sizes) <= 4


@cites(
    LAMBDA_GUIDE + "invocation-eventsourcemapping.html",
    "Lambda event source mappings process events at least once due to the distributed nature of its pollers. As a "
    "result, your Lambda function may receive duplicate events in rare situations.",
)
def test_a_function_may_get_a_message_twice(simulated: Simulated) -> None:
    seen: list[str] = []

    def handle(event: Any) -> None:
        seen.extend(record["messageId"] for record in event["Records"])
        simulated.scheduler.sleep(5_000)

    simulated.mapped(handle)
    simulated.inject(Fault.DUPLICATE)
    simulated.send("x")
    simulated.sleep(3)
    simulated.stop_faults()
    simulated.sleep(60)
    assert len(seen) > len(set(seen)) == 1
