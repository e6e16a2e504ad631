"""What Lambda does with a queue, and with what a function answers."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.simulation.conformance.bench import Simulated, failing
from tests.simulation.conformance.cited import LAMBDA, LAMBDA_GUIDE, cites
from tests.simulation.world.faults import Fault
from tests.simulation.world.lane_mapping import LaneMapping

ERRORS = LAMBDA_GUIDE + "services-sqs-errorhandling.html"


def lane(aws: Simulated, handler: Callable[[Any], Any], *, batch_size: int = 10, at_once: int = 2) -> None:
    LaneMapping(
        aws.queue,
        aws.function(handler),
        batch_size=batch_size,
        max_concurrency=at_once,
        scheduler=aws.scheduler,
        weather=aws.world.weather,
        trace=aws.world.trace,
    )


@pytest.mark.parametrize("answer", [None, {}, {"batchItemFailures": []}, {"batchItemFailures": None}])
@cites(
    ERRORS,
    "Lambda treats a batch as a complete success if your function returns any of the following: An empty "
    "batchItemFailures list. A null batchItemFailures list. An empty EventResponse. A null EventResponse.",
    moto=False,
)
def test_an_empty_answer_deletes_the_batch(simulated: Simulated, answer: Any) -> None:
    lane(simulated, lambda _event: answer)
    simulated.send("x")
    simulated.sleep(5)
    assert simulated.queue.messages == []


@pytest.mark.parametrize("answer", ["text", failing(""), failing(None), {"batchItemFailures": [{"id": "x"}]}])
@cites(
    ERRORS,
    "Lambda treats a batch as a complete failure if your function returns any of the following: An invalid "
    "JSON response. An empty string itemIdentifier. A null itemIdentifier. An itemIdentifier with a bad key "
    "name.",
    moto=False,
)
def test_a_malformed_answer_keeps_the_batch(simulated: Simulated, answer: Any) -> None:
    lane(simulated, lambda _event: answer)
    simulated.send("x")
    simulated.sleep(5)
    assert len(simulated.queue.messages) == 1


@cites(
    ERRORS,
    "Lambda treats a batch as a complete failure if your function returns any of the following: An "
    "itemIdentifier value with a message ID that doesn't exist",
    moto=False,
)
def test_an_unknown_id_keeps_the_batch(simulated: Simulated) -> None:
    lane(simulated, lambda _event: failing("nobody"))
    simulated.send("x")
    simulated.sleep(5)
    assert len(simulated.queue.messages) == 1


@cites(
    ERRORS,
    "To avoid reprocessing all messages in a failed batch, you can configure your event source mapping to make"
    " only the failed messages visible again.",
    moto=False,
)
def test_only_what_failed_comes_back(simulated: Simulated) -> None:
    seen: list[str] = []

    def handle(event: Any) -> Any:
        seen.extend(record["body"] for record in event["Records"])
        return failing(*(record["messageId"] for record in event["Records"] if record["body"] == "bad"))

    lane(simulated, handle)
    simulated.send("bad")
    simulated.send("good")
    simulated.sleep(40)
    assert seen.count("good") == 1
    assert seen.count("bad") == 2


@cites(ERRORS, "If your function throws an exception, the entire batch is considered a complete failure.", moto=False)
def test_an_error_keeps_the_batch_until_its_timeout(simulated: Simulated) -> None:
    calls: list[int] = []

    def handle(_event: Any) -> None:
        calls.append(simulated.scheduler.now_ms)
        raise RuntimeError

    lane(simulated, handle)
    simulated.send("x")
    simulated.sleep(32)
    assert len(calls) == 2
    assert calls[1] - calls[0] >= 29_000


@cites(
    LAMBDA_GUIDE + "services-sqs-configure.html",
    "the function's timeout ends an invocation, and its messages return after the visibility timeout",
    quoted=False,
    moto=False,
)
def test_a_function_that_takes_too_long_is_killed(simulated: Simulated) -> None:
    after: list[int] = []

    def handle(_event: Any) -> None:
        simulated.scheduler.sleep(60_000)
        after.append(1)

    lane(simulated, handle)
    simulated.send("x")
    simulated.sleep(25)
    assert after == []
    assert len(simulated.queue.messages) == 1


@cites(
    LAMBDA,
    "Limits the number of concurrent instances that the Amazon SQS event source can invoke.",
    moto=False,
)
def test_no_more_than_the_maximum_run_at_once(simulated: Simulated) -> None:
    at_work = [0, 0]

    def handle(_event: Any) -> None:
        at_work[0] += 1
        at_work[1] = max(at_work)
        simulated.scheduler.sleep(2_000)
        at_work[0] -= 1

    lane(simulated, handle, batch_size=1, at_once=3)
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
    moto=False,
)
def test_a_throttled_batch_uses_up_a_receive(simulated: Simulated) -> None:
    weather = simulated.world.weather
    weather.calm, weather.rates = False, {Fault.NOT_STARTED: 1.0}
    lane(simulated, lambda _event: None)
    simulated.queue.send("x")
    simulated.sleep(5)
    assert simulated.queue.messages[0].receives == 1


@cites(
    LAMBDA_GUIDE + "lambda-runtime-environment.html",
    "Objects declared outside of the function's handler method remain initialized, providing additional "
    "optimization when the function is invoked again.",
    moto=False,
)
def test_an_environment_is_used_again(simulated: Simulated) -> None:
    names: list[str] = []

    def handle(_event: Any) -> None:
        task = simulated.scheduler.current
        names.append(task.process.name if task else "")

    lane(simulated, handle)
    for _ in range(3):
        simulated.send("x")
        simulated.sleep(5)
    assert len(set(names)) == 1


@cites(
    LAMBDA_GUIDE + "lambda-runtime-environment.html",
    "Background processes or callbacks that were initiated by your Lambda function and did not complete when "
    "the function ended resume if Lambda reuses the execution environment.",
    moto=False,
)
def test_threads_left_behind_go_on_with_the_next_invocation(simulated: Simulated) -> None:
    done: list[int] = []

    def handle(_event: Any) -> None:
        pool = simulated.world.threads.pool()

        def slowly() -> None:
            simulated.scheduler.sleep(1_000)
            done.append(simulated.scheduler.now_ms)

        pool.submit(slowly)
        simulated.scheduler.sleep(100)

    lane(simulated, handle)
    simulated.send("x")
    simulated.sleep(30)
    assert done == []
    simulated.send("y")
    simulated.sleep(2)
    assert len(done) == 1
