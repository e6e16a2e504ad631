"""The Powertools layers: they make the writes of Tidemill, and no other."""

from contextlib import nullcontext
from datetime import timedelta
from typing import Any

import pytest
from aws_lambda_powertools.utilities.idempotency.exceptions import (
    IdempotencyInconsistentStateError,
    IdempotencyItemAlreadyExistsError,
    IdempotencyPersistenceLayerError,
)
from aws_lambda_powertools.utilities.idempotency.persistence.datarecord import DataRecord

from tests.support.builders import NOW, TENANT, a_job, a_job_type, fresh_token, reference_to, stored, types_of
from tests.support.faulty_client import Fault, FaultyClient
from tests.support.single_job import INVOCATION, Clock, tools
from tidemill.application.attempt.attempt import Attempt
from tidemill.application.attempt.attempt_report import Ending
from tidemill.application.attempt.run import Run
from tidemill.application.submission.new_jobs import Accepted
from tidemill.application.submission.submit import Submit
from tidemill.domain.errors import PayloadTooLargeError, StoreUnavailableError
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.domain.submission.submission import Submission
from tidemill.dynamodb.job_store import DynamoJobStore
from tidemill.powertools.idempotency import AttemptLayer, SubmitLayer, run_once

TYPES = types_of(a_job_type())


@pytest.fixture
def submit(store: DynamoJobStore) -> Submit:
    return tools(store, TYPES, Clock()).submit


def _once(submit: Submit, payload: Any = None) -> Any:
    submission = Submission(type="test.job", payload=payload or {}, key="key")
    return submit(submission, tenant=TENANT, trace=fresh_token())


def _attempt(store: DynamoJobStore, job: Job, handler: Any) -> Attempt:
    return Attempt(reference_to(job), tools(store, types_of(a_job_type(handler)), Clock()), deadline=NOW + INVOCATION)


def test_a_submission_is_written_once_and_found_again(submit: Submit, store: DynamoJobStore) -> None:
    first, again = _once(submit), _once(submit)

    assert (first.replayed, again.replayed) == (False, True)
    assert again.job == stored(store, first.job)


def test_the_errors_of_tidemill_pass_unchanged(submit: Submit, client: FaultyClient) -> None:
    client.faults = [Fault.NOT_SENT]
    with pytest.raises(StoreUnavailableError):
        _once(submit)

    with pytest.raises(PayloadTooLargeError):
        _once(submit, {"x": "x" * 300_000})


def test_any_other_error_is_wrapped_with_its_cause(
    submit: Submit, store: DynamoJobStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(DynamoJobStore, "insert_if_absent")

    with pytest.raises(IdempotencyPersistenceLayerError) as raised:
        _once(submit)

    assert isinstance(raised.value.__cause__, AttributeError)


@pytest.mark.filterwarnings("ignore:Disabling idempotency")
def test_disabled_idempotency_raises_and_writes_nothing(
    submit: Submit, store: DynamoJobStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("POWERTOOLS_IDEMPOTENCY_DISABLED", "true")

    with pytest.raises(AssertionError, match="without writing the job"):
        _once(submit)


def test_the_error_of_a_handler_is_raised_after_its_settle(store: DynamoJobStore, queued: Job) -> None:
    def handler(_payload: Any, _run: Run) -> None:
        raise KeyError("no")

    attempt = _attempt(store, queued, handler)

    with pytest.raises(KeyError):
        run_once(attempt, remaining=INVOCATION)

    assert stored(store, queued).state is State.RETRYING


def test_an_error_that_powertools_retries_runs_the_handler_once(store: DynamoJobStore, queued: Job) -> None:
    runs = []

    def handler(_payload: Any, _run: Run) -> None:
        runs.append(1)
        raise IdempotencyInconsistentStateError("of an idempotent function within the handler")

    attempt = _attempt(store, queued, handler)
    run_once(attempt, remaining=INVOCATION)

    assert runs == [1]
    assert attempt.report is not None
    assert attempt.report.ending is Ending.RETRYING


def test_powertools_reads_and_writes_no_record_of_its_own(submit: Submit, store: DynamoJobStore, queued: Job) -> None:
    record = DataRecord("key")
    attempt = _attempt(store, queued, lambda _payload, _run: None)
    for layer in (SubmitLayer(submit.insert, queued), AttemptLayer(attempt, remaining=timedelta(0))):
        with pytest.raises(AssertionError, match="a refused write returns its document"):
            layer._get_record("key")
        for write in (layer._put_record, layer._update_record, layer._delete_record):
            with pytest.raises(AssertionError, match="written by the public hook"):
                write(record)


@pytest.mark.parametrize("replayed", [True, False])
def test_a_layer_says_whether_its_job_was_there_before(replayed: bool) -> None:
    accepted = Accepted(job=a_job(), replayed=replayed)
    layer = SubmitLayer(lambda _job: accepted, accepted.job)

    with pytest.raises(IdempotencyItemAlreadyExistsError) if replayed else nullcontext():
        layer.save_inprogress("key")

    assert layer.accepted is accepted


def test_the_layer_never_deletes_a_written_job(submit: Submit, store: DynamoJobStore, queued: Job) -> None:
    SubmitLayer(submit.insert, queued).delete_record("key", ValueError())

    assert stored(store, queued) == queued
