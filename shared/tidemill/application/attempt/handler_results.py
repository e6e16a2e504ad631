"""From the value that a handler returned, or its exception, to an outcome. An unstorable value kills the job."""

from collections.abc import Sequence
from typing import Any, Final

from tidemill.application.attempt.traceback_text import handler_traceback
from tidemill.application.corrections.recorded_undo import recorded_undo
from tidemill.application.events.events import publication
from tidemill.application.submission.submit import Submit
from tidemill.application.submission.validation import stored_json
from tidemill.domain.attempt.outcomes import Awaits, Continued, Failed, Outcome, Snoozed, Stopped, Succeeded, outcome_of
from tidemill.domain.attempt.return_values import Cancelled, Continue, Done, GiveUp, Snooze, WaitFor
from tidemill.domain.batches.batches import BatchFailed
from tidemill.domain.error_text import text_of
from tidemill.domain.errors import (
    CheckpointTooLargeError,
    InvalidPayloadError,
    KeyReusedError,
    PayloadTooLargeError,
    UnknownJobTypeError,
    UnloadedJobTypeError,
)
from tidemill.domain.job import DeathReason, Job
from tidemill.domain.records import replace
from tidemill.domain.submission.submission import Submission
from tidemill.domain.waiting.waiting import Cause

LARGEST_RESULT_BYTES: Final = 32 * 1024
LARGEST_CHECKPOINT_BYTES: Final = 8 * 1024
#: In characters, for the document. It is kept of the last error only.
LONGEST_TRACEBACK: Final = 1500


def outcome_of_value(value: Any, job: Job, submit: Submit) -> Outcome:
    """`job` is as claimed. Raises `UnloadedJobTypeError`, and as storing the payload of a follow-up job does."""
    match value:
        case Snooze() | Continue() | WaitFor():
            return _later(value)
        case BatchFailed():
            return _batch_failed(value, job, submit)
        case GiveUp(reason=reason):
            return Failed(error_class=GiveUp.__name__, message=reason, death=DeathReason.GAVE_UP)
        case Cancelled():
            return Stopped()
        case Done():
            return _done(value, job, submit)
        case _:
            return _done(Done(result=value), job, submit)


def _later(value: Snooze | Continue | WaitFor) -> Outcome:
    match value:
        case Snooze(after=after):
            return Snoozed(after=after)
        case Continue(checkpoint=checkpoint, after=after):
            return _with_checkpoint(checkpoint, Continued(checkpoint=None, after=after))
        case WaitFor(name=name, timeout=timeout, checkpoint=checkpoint):
            return _with_checkpoint(checkpoint, Awaits(cause=Cause.SIGNAL, name=name, after=timeout))


def outcome_of_error(error: BaseException) -> Outcome:
    """Return the outcome of an error, with the traceback of a failure."""
    outcome = outcome_of(error)
    if isinstance(outcome, Failed):
        return replace(outcome, traceback=handler_traceback(error, longest=LONGEST_TRACEBACK))
    return outcome


def checkpoint_text(state: Any) -> str:
    """Return the checkpoint as stored JSON. Raises the errors of `stored_json`, and `CheckpointTooLargeError`."""
    text = stored_json(state)
    if len(text) > LARGEST_CHECKPOINT_BYTES:
        raise CheckpointTooLargeError(
            f"the checkpoint is {len(text)} bytes; a job may save at most {LARGEST_CHECKPOINT_BYTES}"
        )
    return text


def _done(done: Done, job: Job, submit: Submit) -> Outcome:
    result: str | None = None
    if done.result is not None:
        try:
            result = stored_json(done.result)
        except (TypeError, ValueError, RecursionError) as error:
            return _unstorable(f"a result must be JSON: {text_of(error)}")
        if len(result) > LARGEST_RESULT_BYTES:
            return _unstorable(f"the result is {len(result)} bytes; a job may keep at most {LARGEST_RESULT_BYTES}")
    # The undo first: the payload of a follow-up job is stored only if nothing is refused.
    what = "the undo"
    try:
        undo = None if done.undo is None else recorded_undo(done.undo, job, submit)
        what = "a follow-up job"
        events = [publication(event, submit.job_types) for event in done.events]
        follow_ups = _follow_ups([*done.then, *events], job, submit)
    except UnloadedJobTypeError:
        raise
    except (InvalidPayloadError, PayloadTooLargeError, UnknownJobTypeError) as error:
        return _unstorable(f"{what} was refused: {error}")
    # A tuple, since an iterator would be empty when the settle is tried again.
    return Succeeded(result=result, writes=tuple(done.writes), follow_ups=follow_ups, undo=undo)


def _batch_failed(failed: BatchFailed, job: Job, submit: Submit) -> Outcome:
    return Failed(
        error_class=BatchFailed.__name__,
        message=failed.reason,
        death=DeathReason.GAVE_UP,
        follow_ups=_follow_ups(failed.then, job, submit),
        checkpoint=checkpoint_text(failed.checkpoint),
    )


def _follow_ups(submissions: Sequence[Submission], job: Job, submit: Submit) -> tuple[Job, ...]:
    jobs = [submit.prepare_follow_up(submission, job, index=index) for index, submission in enumerate(submissions)]
    # Follow-ups with one idempotency key are one job, and one may be this job; a transaction writes each item once.
    by_id = {job.id: job}
    for follow_up in jobs:
        if by_id.setdefault(follow_up.id, follow_up).body_hash != follow_up.body_hash:
            raise KeyReusedError(
                f"the follow-up job {follow_up.id} of type {follow_up.type} has the idempotency key of "
                f"{'its parent' if follow_up.id == job.id else 'another follow-up job'}, but another body"
            )
    return tuple(submit.put_away(follow_up) for follow_up in by_id.values() if follow_up is not job)


def _with_checkpoint(checkpoint: Any, outcome: Continued | Awaits) -> Outcome:
    if checkpoint is None:
        return outcome
    try:
        return replace(outcome, checkpoint=checkpoint_text(checkpoint))
    except CheckpointTooLargeError as error:
        return _unstorable(str(error))
    except (TypeError, ValueError, RecursionError) as error:
        return _unstorable(f"a checkpoint must be JSON: {text_of(error)}")


def _unstorable(message: str) -> Failed:
    return Failed(error_class="ResultError", message=message, death=DeathReason.RESULT_UNSTORABLE)
