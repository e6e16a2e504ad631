"""BatchExecuteStatement over UpdateItem and PutItem of moto, which cannot evaluate a condition in PartiQL."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from botocore.exceptions import ClientError

from tests.support.partiql_updates import as_insert, as_update


def statements_over(client: Any) -> Callable[..., Any]:
    """The method of a client. Each statement is a write with an answer of its own."""

    def batch_execute_statement(*, Statements: Sequence[Mapping[str, Any]]) -> Any:  # noqa: N803 - as boto3 calls it
        return {"Responses": [_answer(client, statement) for statement in Statements]}

    return batch_execute_statement


def _answer(client: Any, statement: Mapping[str, Any]) -> dict[str, Any]:
    insert = as_insert(statement)
    try:
        if insert:
            client.put_item(**insert)
        else:
            client.update_item(**as_update(statement))
    except ClientError as error:
        response: Any = error.response
        code = response["Error"]["Code"].removesuffix("Exception")
        if insert and code == "ConditionalCheckFailed":
            code = "DuplicateItem"
        item = {"Item": response["Item"]} if "Item" in response else {}
        return {"Error": {"Code": code, "Message": str(error), **item}}
    return {}
