"""The item of each lane that its last canary wrote, together with its success."""

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from tidemill.aws.attribute_values import text
from tidemill.aws.clients import translated
from tidemill.domain.errors import StoreUnavailableError
from tidemill.names import CANARY_PREFIX, JOB_KEY, Lane

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


def submitted(client: "DynamoDBClient", *, table: str) -> Mapping[str, datetime]:
    """By lane, when that canary was submitted: one eventually consistent read. A lane without a mark is absent."""
    keys = [{JOB_KEY: text(f"{CANARY_PREFIX}{lane}")} for lane in Lane]
    with translated():
        answer = client.batch_get_item(RequestItems={table: {"Keys": keys}})
    if answer.get("UnprocessedKeys"):
        raise StoreUnavailableError("the read of the canaries was throttled")
    return {
        item[JOB_KEY]["S"].removeprefix(CANARY_PREFIX): datetime.fromisoformat(item["submitted_at"]["S"])
        for item in answer["Responses"].get(table, ())
    }
