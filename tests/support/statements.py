"""BatchExecuteStatement over the UpdateItem of moto, which cannot evaluate a condition in PartiQL."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from botocore.exceptions import ClientError

from tests.support.partiql_updates import as_update


def statements_over(client: Any) -> Callable[..., Any]:
    """The method of a client. Each statement is an update with an answer of its own."""

    def batch_execute_statement(*, Statements: Sequence[Mapping[str, Any]]) -> Any:  # noqa: N803 - as boto3 calls it
        return {"Responses": [_answer(client, statement) for statement in Statements]}

    return batch_execute_statement


def _answer(client: Any, statement: Mapping[str, Any]) -> dict[str, Any]:
    try:
        client.update_item(**as_update(statement))
    except ClientError as error:
        response: Any = error.response
        code = response["Error"]["Code"].removesuffix("Exception")
        item = {"Item": response["Item"]} if "Item" in response else {}
        return {"Error": {"Code": code, "Message": str(error), **item}}
    return {}
