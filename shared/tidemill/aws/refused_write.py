"""Conditional writes of DynamoDB: reads the refusal of one."""

from typing import Any

from botocore.exceptions import ClientError

from tidemill.aws.clients import Item


def refusing_item(error: ClientError) -> Item | None:
    """The item that refused the write, if the write asked for it with `ReturnValuesOnConditionCheckFailure`.

    None if the item does not exist. Raises `error` if it is not the refusal of a condition.
    https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_PutItem.html
    """
    response: Any = error.response
    if response["Error"]["Code"] != "ConditionalCheckFailedException":
        raise error
    item: Item | None = response.get("Item")
    return item
