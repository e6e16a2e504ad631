"""Retries of the SDK."""

from typing import Final

import pytest
from botocore.exceptions import BotoCoreError, ClientError, ConnectTimeoutError, ReadTimeoutError

from tests.simulation.conformance.case import TABLE
from tests.simulation.conformance.citations import SDK_GUIDE, cites
from tests.simulation.conformance.sdk_retries import Outcome, Retrying
from tests.simulation.conformance.simulated_aws import Simulated
from tests.simulation.world.faults import Fault

RETRIES: Final = SDK_GUIDE + "retries.html"
BUSY: Final = ("InternalServerError", 500)
_URL: Final = "https://simulated.invalid"


@cites(RETRIES, "A default value of 3 for maximum attempts (including the initial request).")
def test_a_call_is_tried_three_times(sdk: Retrying) -> None:
    assert sdk.call(*[BUSY] * 5) == "InternalServerError"
    assert sdk.tries == 3


@cites(
    RETRIES,
    "Your AWS client might see calls to AWS services fail due to unexpected issues on the client side. Or calls might "
    "fail due to rate limiting from the AWS service you're attempting to call. In either case, these kinds of failures "
    "often don't require special handling and the call should be made again, often after a brief waiting period.",
)
def test_a_successful_retry_hides_the_error(sdk: Retrying) -> None:
    assert sdk.call(BUSY, None) == ""
    assert sdk.tries == 2


@pytest.mark.parametrize("status", [500, 502, 503, 504])
@cites(
    RETRIES,
    "Retry attempts on nondescriptive, transient error codes. Specifically, these HTTP status codes: 500, 502, 503, "
    "504.",
)
def test_server_errors_are_retried(sdk: Retrying, status: int) -> None:
    assert sdk.call(("SomeError", status), None) == ""


@pytest.mark.parametrize(
    "error", [ConnectTimeoutError(endpoint_url=_URL), ReadTimeoutError(endpoint_url=_URL)], ids=["connect", "read"]
)
@cites(RETRIES, "Transient errors/exceptions RequestTimeout RequestTimeoutException PriorRequestNotComplete")
def test_timeouts_are_retried(sdk: Retrying, error: Exception) -> None:
    assert sdk.call(error, None) == ""
    assert sdk.call(error, error, error) == type(error).__name__


@pytest.mark.parametrize(
    "refusal",
    [
        ("ProvisionedThroughputExceededException", 400),
        ("RequestThrottled", 403),
        ("SlowDown", 503),
        ("Throttling", 400),
        ("ThrottlingException", 400),
        ("TransactionInProgressException", 400),
    ],
)
@cites(
    RETRIES,
    "Service-side throttling/limit errors and exceptions Throttling ThrottlingException ThrottledException "
    "RequestThrottledException TooManyRequestsException ProvisionedThroughputExceededException "
    "TransactionInProgressException RequestLimitExceeded BandwidthLimitExceeded LimitExceededException "
    "RequestThrottled SlowDown EC2ThrottledException",
)
def test_throttled_calls_are_retried(sdk: Retrying, refusal: Outcome) -> None:
    assert sdk.call(refusal, None) == ""


@pytest.mark.parametrize(
    "code",
    [
        "ConditionalCheckFailedException",
        "IdempotentParameterMismatchException",
        "InvalidParameterValue",
        "NoSuchKey",
        "ResourceNotFoundException",
        "TransactionCanceledException",
        "TransactionConflictException",
        "ValidationException",
    ],
)
@cites(RETRIES, "no other error is tried again", quoted=False)
def test_refusals_are_final(sdk: Retrying, code: str) -> None:
    assert sdk.call((code, 400), None) == code
    assert sdk.tries == 1


@cites(RETRIES, "the caller gets the error of the last try", quoted=False)
def test_the_last_error_counts(sdk: Retrying) -> None:
    silence = ReadTimeoutError(endpoint_url=_URL)
    assert sdk.call(silence, BUSY, ("ThrottlingException", 400)) == "ThrottlingException"
    assert sdk.call(BUSY, silence, ("ConditionalCheckFailedException", 400)) == "ConditionalCheckFailedException"
    assert sdk.call(BUSY, BUSY, silence) == "ReadTimeoutError"


@cites(
    RETRIES,
    "Any retry attempt will include an exponential backoff by a base factor of 2 for a maximum backoff time of 20 "
    "seconds.",
)
def test_pauses_grow(sdk: Retrying) -> None:
    longest = [0.0, 0.0]
    for _ in range(40):
        sdk.call(BUSY, BUSY, BUSY)
        assert len(sdk.pauses) == 2
        longest = [max(pair) for pair in zip(longest, sdk.pauses, strict=True)]
    # The latency of a call adds to the pause.
    assert 0.5 < longest[0] < 1.1
    assert 1.0 < longest[1] < 2.1


@cites(RETRIES, "Circuit-breaking functionality to prevent retry attempts during service outages.")
def test_an_outage_ends_the_retries(sdk: Retrying) -> None:
    silence = ReadTimeoutError(endpoint_url=_URL)
    for _ in range(30):
        sdk.call(silence, silence, silence)
    assert sdk.tries == 1


@cites(RETRIES, "a call that was not answered may have been applied, and is applied again by its retries", quoted=False)
def test_a_call_with_a_lost_response_is_applied(simulated: Simulated) -> None:
    simulated.inject(Fault.ANSWER_LOST)
    with pytest.raises(ReadTimeoutError):
        simulated.update("a", "ADD n :one", ExpressionAttributeValues={":one": {"N": "1"}})
    simulated.stop_faults()
    assert (simulated.get("a") or {})["n"] == {"N": "3"}


@cites(RETRIES, "a write that a retry repeats is refused by what it wrote itself", quoted=False)
def test_a_retry_may_meet_its_own_success(simulated: Simulated) -> None:
    simulated.inject(Fault.ANSWER_LOST, 0.5)
    ends = set()
    for number in range(20):
        try:
            item = {"pk": {"S": f"item-{number}"}}
            simulated.dynamodb.put_item(TableName=TABLE, Item=item, ConditionExpression="attribute_not_exists(pk)")
        except (BotoCoreError, ClientError) as error:
            ends.add(type(error).__name__)
    assert ends == {"ConditionalCheckFailedException", "ReadTimeoutError"}
    assert len(simulated.table.items) == 20
