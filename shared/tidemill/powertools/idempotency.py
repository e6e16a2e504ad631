"""Powertools idempotency over our own writes: these persistence layers add no record and no call.

The DynamoDB layer of Powertools updates and deletes its record without a condition, so a late failure can delete a
newer success. Here, `put` is the insert or the claim, and `update` and `delete` are the settle. Each is conditional.
https://docs.powertools.aws.dev/lambda/python/latest/utilities/idempotency/#bring-your-own-persistent-store
"""

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final, NoReturn

from aws_lambda_powertools.utilities.idempotency import (
    BasePersistenceLayer,
    IdempotencyConfig,
    idempotent_function,
)
from aws_lambda_powertools.utilities.idempotency.exceptions import (
    IdempotencyItemAlreadyExistsError,
    IdempotencyPersistenceLayerError,
)
from aws_lambda_powertools.utilities.idempotency.persistence.datarecord import STATUS_CONSTANTS, DataRecord

from tidemill.application.attempt.attempt import Attempt
from tidemill.application.attempt.handler_results import outcome_of_error
from tidemill.application.submission.new_jobs import Accepted, Insert
from tidemill.domain.attempt.outcomes import Outcome
from tidemill.domain.errors import TidemillError
from tidemill.domain.job import Job

_CONFIG: Final = IdempotencyConfig()


class _JobLayer(BasePersistenceLayer):
    """Overrides the public hooks: the inner ones get a hash, and these layers need the job and its exception."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]

    def _get_record(self, idempotency_key: str) -> NoReturn:
        raise AssertionError(f"{idempotency_key}: a refused write returns its document, so none is read")

    def _put_record(self, data_record: DataRecord) -> NoReturn:
        raise AssertionError(f"{data_record.idempotency_key}: written by the public hook")

    def _update_record(self, data_record: DataRecord) -> NoReturn:
        raise AssertionError(f"{data_record.idempotency_key}: written by the public hook")

    def _delete_record(self, data_record: DataRecord) -> NoReturn:
        raise AssertionError(f"{data_record.idempotency_key}: written by the public hook")


def _found(key: str) -> IdempotencyItemAlreadyExistsError:
    """Makes Powertools skip the function and read no record, because the job exists or its claim was refused."""
    return IdempotencyItemAlreadyExistsError(old_data_record=DataRecord(key, status=STATUS_CONSTANTS["COMPLETED"]))


class SubmitLayer(_JobLayer):
    """For a submission, `put` is the insert. The job document is the record, so `update` and `delete` do nothing."""

    def __init__(self, insert: Insert, job: Job) -> None:
        super().__init__()
        self._insert = insert
        self._job = job
        self.accepted: Accepted | None = None

    def save_inprogress(self, data: Any, remaining_time_in_millis: int | None = None) -> None:  # noqa: ARG002
        self.accepted = self._insert(self._job)
        if self.accepted.replayed:
            raise _found(data)

    def save_success(self, data: Any, result: Any) -> None:
        pass

    def delete_record(self, data: Any, exception: Exception) -> None:
        pass


class AttemptLayer(_JobLayer):
    """For an attempt, `put` is the claim, and `update` and `delete` are the settle."""

    def __init__(self, attempt: Attempt, *, remaining: timedelta) -> None:
        super().__init__()
        self._attempt = attempt
        self._remaining = remaining

    def save_inprogress(self, data: Any, remaining_time_in_millis: int | None = None) -> None:  # noqa: ARG002
        if not self._attempt.claim(remaining=self._remaining):
            raise _found(data)

    def save_success(self, data: Any, result: Outcome) -> None:  # type: ignore[override]  # noqa: ARG002
        self._attempt.finish(result)

    def delete_record(self, data: Any, exception: Exception) -> None:  # noqa: ARG002
        self._attempt.finish(outcome_of_error(exception))


def insert_once(insert: Insert, job: Job) -> Accepted:
    """`InsertOnce`: the write of a submission, inside the idempotency utility. Raises what `insert` raises."""
    layer = SubmitLayer(insert, job)
    _guarded(lambda *, key: key, layer)(key=job.id)
    if layer.accepted is None:
        raise AssertionError("the idempotency utility returned without writing the job; do not disable idempotency")
    return layer.accepted


def run_once(attempt: Attempt, *, remaining: timedelta) -> None:
    """Claim, run and settle; `attempt.report` is set. Raises the exception of the store or the handler."""

    def run(*, key: str) -> Outcome:  # noqa: ARG001
        return attempt.run()

    _guarded(run, AttemptLayer(attempt, remaining=remaining))(key=attempt.reference.job_id)


def _guarded(function: Callable[..., Any], layer: _JobLayer) -> Callable[..., Any]:
    guarded = idempotent_function(function, data_keyword_argument="key", persistence_store=layer, config=_CONFIG)

    def call(**arguments: Any) -> Any:
        try:
            return guarded(**arguments)
        except IdempotencyPersistenceLayerError as wrapped:
            if isinstance(wrapped.__cause__, TidemillError):
                raise wrapped.__cause__ from None
            raise

    return call
