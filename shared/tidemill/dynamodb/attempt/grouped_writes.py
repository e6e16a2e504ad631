"""Writes several jobs with one BatchExecuteStatement: a statement each, with its own condition and its own answer.

It is not a transaction, and a statement costs as much as its UpdateItem. A call takes 25 statements, each of another
item.
https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchExecuteStatement.html
https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchStatementError.html
"""

import time
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from tidemill.application.attempt.grouped_commit import Answer, FirstClaim
from tidemill.application.ports import Settling
from tidemill.aws.clients import Item
from tidemill.domain.errors import TidemillError, WriteRefusedError
from tidemill.domain.job import Job
from tidemill.domain.states import Write
from tidemill.dynamodb.attempt import settle_requests
from tidemill.dynamodb.attempt.first_claim import first_claim
from tidemill.dynamodb.document import HOLD_ATTRIBUTES, decode, key, split_key, value_of
from tidemill.dynamodb.indexes import Indexes
from tidemill.dynamodb.partiql import Statement, statement

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_REFUSED: Final = "ConditionalCheckFailed"
#: The statement may be sent again. After the second of them, it is unknown whether it was applied.
_TRANSIENT: Final = frozenset(
    {
        "ProvisionedThroughputExceeded",
        "InternalServerError",
        "RequestLimitExceeded",
        "ThrottlingError",
        "TransactionConflict",
    }
)
#: How often a statement is sent, and the pause before the first repeat, which doubles. The SDK repeats whole calls.
_TRIES: Final = 3
_PAUSE_SECONDS: Final = 0.1


class _Written(Struct, frozen=True):
    """The statement was applied."""


class _Refused(Struct, frozen=True):
    """The item did not meet the condition."""

    item: Item


#: None: it is unknown whether the statement was applied, or it was not.
_Outcome = _Written | _Refused | None


class DynamoGroupedWrites:
    """`GroupedWrites` over the jobs table. `failed` gets each error: the caller goes on with calls of single jobs."""

    def __init__(
        self,
        client: "DynamoDBClient",
        *,
        table: str,
        retention: timedelta,
        indexes: Indexes,
        failed: Callable[[str], None],
    ) -> None:
        self._client = client
        self._table = table
        self._retention = retention
        self._indexes = indexes
        self._failed = failed

    def claim(self, claims: Sequence[FirstClaim]) -> Sequence[Answer]:
        outcomes = self._execute([self._claim(each) for each in claims])
        pairs = list(zip(claims, outcomes, strict=True))
        documents = self._read([each for each, outcome in pairs if isinstance(outcome, _Written)])
        return [
            documents.get(each.token) if isinstance(outcome, _Written) else self._judged(each, outcome)
            for each, outcome in pairs
        ]

    def settle(self, successes: Sequence[Settling]) -> Sequence[Answer]:
        statements = [self._success(each) for each in successes]
        outcomes = self._execute(statements)
        return [_settled(each, outcome) for each, outcome in zip(successes, outcomes, strict=True)]

    def _claim(self, claim: FirstClaim) -> Statement | None:
        request = first_claim(
            claim.reference,
            claim.first_run,
            token=claim.token,
            now=claim.now,
            lease_end=claim.lease_end,
            worker=claim.worker,
        )
        return statement(self._table, request)

    def _success(self, success: Settling) -> Statement | None:
        job = success.job
        request = settle_requests.settle(
            job, success.settlement, now=success.now, retention=self._retention, indexes=self._indexes
        )
        removed = (*HOLD_ATTRIBUTES, "open_runs", "wait", "steps")
        # AWS does not document what the removal of a missing attribute does in PartiQL.
        return statement(self._table, request, absent=[name for name in removed if not value_of(job, name)])

    def _execute(self, statements: Sequence[Statement | None]) -> Sequence[_Outcome]:
        """The outcome of each statement. No error leaves it."""
        outcomes: list[_Outcome] = [None] * len(statements)
        left = [index for index, each in enumerate(statements) if each]
        for attempt in range(_TRIES if left else 0):
            if attempt:
                time.sleep(_PAUSE_SECONDS * 2 ** (attempt - 1))
            request: Any = [statements[index] for index in left]
            try:
                responses: Sequence[Any] = self._client.batch_execute_statement(Statements=request)["Responses"]
            except Exception as error:  # noqa: BLE001 - denied, throttled, unknown to this region: one call a job then
                self._failed(str(error))
                return outcomes
            refusals = {index: each.get("Error") for index, each in zip(left, responses, strict=True)}
            for index, refusal in refusals.items():
                outcomes[index] = self._outcome(refusal)
            left = [index for index, refusal in refusals.items() if refusal and refusal["Code"] in _TRANSIENT]
            if not left:
                break
        return outcomes

    def _outcome(self, refusal: Any) -> _Outcome:
        if not refusal:
            return _Written()
        if refusal["Code"] == _REFUSED and "Item" in refusal:
            return _Refused(refusal["Item"])
        if refusal["Code"] not in {_REFUSED, *_TRANSIENT}:
            self._failed(f"{refusal['Code']}: {refusal.get('Message', '')}")
        return None

    def _read(self, claims: Sequence[FirstClaim]) -> dict[str, Job]:
        """The claimed documents, by token: only those that still have it as their owner.

        AWS does not document `RETURNING` for batches, so this is one consistent read.
        https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ql-reference.multiplestatements.batching.html
        """
        if not claims:
            return {}
        keys = [key(each.reference.tenant, each.reference.job_id) for each in claims]
        request: Any = {self._table: {"Keys": keys, "ConsistentRead": True}}
        try:
            items = self._client.batch_get_item(RequestItems=request)["Responses"].get(self._table, [])
        except Exception as error:  # noqa: BLE001 - as above
            self._failed(str(error))
            return {}
        found = {split_key(item): item for item in items}
        documents: dict[str, Job] = {}
        for each in claims:
            job = _decoded(found.get((each.reference.tenant, each.reference.job_id)))
            if job and job.lease.owner == each.token:
                documents[each.token] = job
        return documents

    def _judged(self, claim: FirstClaim, outcome: _Refused | None) -> Answer:
        job = _decoded(outcome.item) if outcome else None
        if job is None:
            return None
        if job.lease.owner == claim.token:
            # The answer of the first send was lost.
            return job
        if job.generation != claim.reference.generation or job.due is None or job.due > claim.now:
            return WriteRefusedError(Write.CLAIM, job)
        # Only the condition of a first attempt refused it.
        return None


def _settled(success: Settling, outcome: _Outcome) -> Answer:
    if isinstance(outcome, _Written):
        return success.job
    current = _decoded(outcome.item) if outcome else None
    if current is None:
        return None
    return success.job if success.job.settled_in(current) else WriteRefusedError(Write.SETTLE, current)


def _decoded(item: Item | None) -> Job | None:
    """None for an item that this code cannot read: the call of a single job reports it."""
    try:
        return decode(item) if item else None
    except TidemillError:
        return None
