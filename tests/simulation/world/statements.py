"""BatchExecuteStatement: each statement is applied at a time of its own, and has an answer of its own.

https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchExecuteStatement.html
"""

from collections.abc import Mapping
from random import Random
from typing import Any, Final

from tests.simulation.world.dynamodb import DynamoDB
from tests.simulation.world.errors import ServiceError, invalid
from tests.simulation.world.faults import Fault
from tests.support.partiql_updates import as_insert, as_update

_MOST_STATEMENTS: Final = 25
_LONGEST_MS: Final = 3
#: Share of seeds whose roles lack the rights on statements.
_DENIED: Final = 0.1

Request = Mapping[str, Any]
Answer = dict[str, Any]


class Statements:
    """Handles the call for `DynamoDB`."""

    def __init__(self, dynamodb: DynamoDB, seed: int) -> None:
        self._dynamodb = dynamodb
        self._scheduler = dynamodb.scheduler
        self._denied = Random(f"statements {seed}").random() < _DENIED

    def batch_execute_statement(self, request: Request) -> Answer:
        statements = request["Statements"]
        if not 0 < len(statements) <= _MOST_STATEMENTS:
            raise invalid("Member must have length less than or equal to 25")
        task = self._scheduler.current
        if task is None:
            raise AssertionError("only a task can call")
        token, answers = object(), dict.fromkeys(range(len(statements)), None)

        def run(index: int) -> None:
            answers[index] = self._scheduler.on_behalf_of(task, lambda: self._answer(statements[index]))
            if all(answers.values()):
                self._scheduler.wake(task, token)

        for index in answers:
            # Also if the caller has died by then.
            self._scheduler.after(self._scheduler.random.randint(0, _LONGEST_MS), run, index)
        self._scheduler.park(token)
        return {"Responses": list(answers.values())}

    def _answer(self, statement: Request) -> Answer:
        insert = as_insert(statement)
        write = insert or as_update(statement)
        if self._denied:
            return {"Error": {"Code": "AccessDenied", "Message": "not authorized to perform this kind of statement"}}
        random = self._scheduler.random
        failed = self._dynamodb.faults.occurs(Fault.PARTIAL_BATCH)
        if failed and random.random() < 0.5:
            return {"Error": {"Code": random.choice(["ThrottlingError", "InternalServerError"]), "Message": "again"}}
        try:
            (self._dynamodb.put_item if insert else self._dynamodb.update_item)(write)
        except ServiceError as refused:
            error: dict[str, Any] = {
                "Code": refused.code.removesuffix("Exception"),
                "Message": refused.message,
                **refused.more,
            }
            if error["Code"] == "Validation":
                raise AssertionError(f"{refused.message}: {statement}") from None
            if insert and error["Code"] == "ConditionalCheckFailed":
                error = {"Code": "DuplicateItem", "Message": "the item exists"}
            return {"Error": error, "TableName": write["TableName"]}
        # The answer of an applied statement may be an error, too.
        return (
            {"Error": {"Code": "InternalServerError", "Message": "again"}}
            if failed
            else {"TableName": write["TableName"]}
        )
