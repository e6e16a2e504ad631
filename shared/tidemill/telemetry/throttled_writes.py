"""Counts throttled writes and names their items in the log.

The error of a throttled call does not name its item, and most such calls succeed when the SDK tries them again. The
alarm uses this count and not the metrics of DynamoDB: an alarm on those "always ignores missing data", and they have
data only while writes are throttled, so it could stay in ALARM for ever.
https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_PutMetricAlarm.html
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from tidemill.metrics import Metric
from tidemill.names import ATTENTION_KEY, JOB_KEY, LISTING_KEY, Lane
from tidemill.telemetry.embedded_metrics import embedded
from tidemill.telemetry.outcome_log import logger

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_WRITES: Final = ("PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems")
#: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html
_THROTTLES: Final = frozenset(
    {"ProvisionedThroughputExceededException", "RequestLimitExceeded", "ThrottlingException", "Throttling"}
)
#: The codes of a throttled entry in a cancelled transaction:
#: https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
_THROTTLED_ENTRIES: Final = frozenset({"ProvisionedThroughputExceeded", "ThrottlingError"})

_Response = tuple[Any, Mapping[str, Any]]
_Write = Mapping[str, Any]


def watch(client: "DynamoDBClient", *, stage: str) -> None:
    """From now on, write a line for each call of this client with a throttled write."""
    for operation in _WRITES:
        # Emitted after each try of a call. A second registration under the id changes nothing.
        report = partial(_report, stage)
        client.meta.events.register(f"needs-retry.dynamodb.{operation}", report, unique_id=f"tidemill-{operation}")


def _report(
    stage: str, *, response: _Response | None, operation: Any, attempts: int, request_dict: Mapping[str, Any], **_: Any
) -> None:
    """One line for all tries of a call. Returns nothing, so the SDK itself decides whether to try again."""
    if response is None or attempts > 1:
        return
    # A line that cannot be written must not fail the call.
    with suppress(LookupError, TypeError, ValueError):
        answer = response[1]
        writes = list(_throttled(answer, json.loads(request_dict["body"])))
        if writes:
            partitions = sorted({partition for write in writes for partition in _partitions(write)})
            fields = {"keys": [_key(write) for write in writes], "partitions": partitions, "reasons": _reasons(answer)}
            given = {name: value for name, value in fields.items() if value}
            counted = embedded({Metric.WRITES_THROTTLED: len(writes)}, stage=stage, lane=Lane.DEFAULT)
            logger().warning("write throttled", extra={"operation": operation.name, **given, **counted})


def _throttled(answer: Mapping[str, Any], request: Mapping[str, Any]) -> Iterator[_Write]:
    entries = [write for entry in request.get("TransactItems", []) for write in entry.values()] or [request]
    if answer.get("Error", {}).get("Code") in _THROTTLES:
        yield from entries
    for entry, reason in zip(entries, answer.get("CancellationReasons", ()), strict=False):
        if reason.get("Code") in _THROTTLED_ENTRIES:
            yield entry


def _key(write: _Write) -> str:
    """The key in the jobs table. For a handler's write to another table: that table's name, and the key if known."""
    item = write.get("Key") or write.get("Item", {})
    if JOB_KEY in item:
        return str(item[JOB_KEY]["S"])
    return " ".join((write["TableName"], *(str(*value.values()) for value in write.get("Key", {}).values())))


def _partitions(write: _Write) -> Iterator[str]:
    """The index partitions that it writes: a throttled partition throttles the table."""
    item, values = write.get("Item", {}), write.get("ExpressionAttributeValues", {})
    for name in (ATTENTION_KEY, LISTING_KEY):
        found = item.get(name) or values.get(f":new_{name}")
        if found:
            yield f"{name} {found['S']}"


def _reasons(answer: Mapping[str, Any]) -> Sequence[str]:
    """Which limit of which table or index, as DynamoDB says it. The name of the member differs between its errors."""
    reasons = answer.get("ThrottlingReasons") or answer.get("throttlingReasons") or ()
    return [f"{each.get('reason')} {each.get('resource', '').rpartition(':')[2]}" for each in reasons]
