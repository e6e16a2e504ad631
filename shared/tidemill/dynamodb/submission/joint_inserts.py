"""Inserts several new jobs with one BatchExecuteStatement: a statement each, with its own answer. No transaction.

An INSERT is refused if an item with its key exists, also an expired one, which the insert of one job replaces.
https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ql-reference.insert.html
https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchExecuteStatement.html
https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchStatementError.html
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from tidemill.domain.job import Job
from tidemill.dynamodb import job_writes
from tidemill.dynamodb.indexes import Indexes
from tidemill.dynamodb.partiql import insertion

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

#: These errors say nothing about the rights of the function or the form of the statement.
_EXPECTED: Final = frozenset(
    {
        "DuplicateItem",
        "ProvisionedThroughputExceeded",
        "InternalServerError",
        "RequestLimitExceeded",
        "ThrottlingError",
        "TransactionConflict",
    }
)


class JointInserts:
    """`InsertTogether` over the jobs table. `failed` gets errors of whole calls, and unexpected ones of statements."""

    def __init__(
        self, client: "DynamoDBClient", *, table: str, indexes: Indexes, failed: Callable[[str], None]
    ) -> None:
        self._client = client
        self._table = table
        self._indexes = indexes
        self._failed = failed

    def __call__(self, jobs: Sequence[Job]) -> Sequence[bool]:
        items = [job_writes.insert(job, indexes=self._indexes)["Item"] for job in jobs]
        request: Any = [insertion(self._table, item) for item in items]
        try:
            responses: Sequence[Any] = self._client.batch_execute_statement(Statements=request)["Responses"]
        except Exception as error:  # noqa: BLE001 - denied, throttled, unknown to this region: one call a job then
            self._failed(str(error))
            return [False] * len(jobs)
        errors = [each.get("Error") for each in responses]
        for code in sorted({error["Code"] for error in errors if error} - _EXPECTED):
            self._failed(code)
        return [error is None for error in errors]
