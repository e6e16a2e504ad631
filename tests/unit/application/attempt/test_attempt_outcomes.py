"""The values and exceptions of a handler, and the facts that its run gives it."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import (
    LEASE,
    NOW,
    SECOND,
    TENANT,
    a_job_type,
    brought_to,
    claimed,
    reference_to,
    stored,
    types_of,
    with_changes,
)
from tests.support.single_job import INVOCATION, Clock, carried_out, tools
from tests.unit.conftest import Carry
from tidemill.application.attempt.attempt import Attempt
from tidemill.application.attempt.attempt_report import Ending
from tidemill.application.attempt.handler_results import LARGEST_CHECKPOINT_BYTES, LONGEST_TRACEBACK
from tidemill.application.attempt.run import Run
from tidemill.application.job_types import JobType
from tidemill.domain.attempt.return_values import Cancelled, Continue, Done, GiveUp, Snooze
from tidemill.domain.errors import CancelRequestedError, JobTimeoutError, LeaseLostError, RetryAfter
from tidemill.domain.job import DeathReason, Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.submission.submission import Submission
from tidemill.dynamodb.job_store import DynamoJobStore

Handler = Callable[[Any, Run], Any]


def _type(handler: Handler, **changes: Any) -> JobType:
    return replace(a_job_type(handler), **changes)


def test_a_snooze_runs_the_job_again_later_with_its_attempt_given_back(
    carry: Carry, store: DynamoJobStore, queued: Job
) -> None:
    report = carry(queued, a_job_type(lambda _payload, _run: Snooze(90 * SECOND)))

    job = stored(store, queued)
    assert (report.ending, report.put_back_until) == (Ending.SNOOZED, None)
    assert (job.state, job.due, job.attempt, job.hops, job.generation) == (State.QUEUED, NOW + 90 * SECOND, 0, 1, 2)


def test_a_long_snooze_is_left_to_the_scheduler(carry: Carry, store: DynamoJobStore, queued: Job) -> None:
    carry(queued, a_job_type(lambda _payload, _run: Snooze(timedelta(days=2))))

    assert (stored(store, queued).state, stored(store, queued).due) == (State.SCHEDULED, NOW + timedelta(days=2))


def test_a_continuation_resumes_from_its_checkpoint(carry: Carry, store: DynamoJobStore, queued: Job) -> None:
    seen = []

    def handler(_payload: Any, run: Run) -> Any:
        seen.append(run.resumed_from)
        return Continue({"page": 2}) if run.resumed_from is None else "done"

    endings = [carry(stored(store, queued), a_job_type(handler)).ending for _ in range(2)]

    assert (endings, seen) == ([Ending.CONTINUED, Ending.SUCCEEDED], [None, {"page": 2}])
    assert stored(store, queued).hops == 1


def test_more_hops_than_allowed_kill_the_job(carry: Carry, store: DynamoJobStore, queued: Job) -> None:
    endless = a_job_type(lambda _payload, _run: Continue(), max_hops=2)

    endings = [carry(stored(store, queued), endless).ending for _ in range(4)]

    assert endings == [Ending.CONTINUED] * 3 + [Ending.DEAD]
    assert stored(store, queued).death is DeathReason.HOPS


def test_giving_up_kills_the_job_with_its_reason(carry: Carry, store: DynamoJobStore, queued: Job) -> None:
    report = carry(queued, a_job_type(lambda _payload, _run: GiveUp("the account is closed")))

    assert (report.ending, report.error) == (Ending.DEAD, "GiveUp: the account is closed")
    assert stored(store, queued).death is DeathReason.GAVE_UP


def test_retry_after_sets_the_time_of_the_next_attempt(carry: Carry, store: DynamoJobStore, queued: Job) -> None:
    def handler(_payload: Any, _run: Run) -> None:
        raise RetryAfter(120, "the service said so")

    report = carry(queued, a_job_type(handler))

    assert (report.ending, report.error) == (Ending.RETRYING, "RetryAfter: the service said so")
    assert (stored(store, queued).due, stored(store, queued).attempt) == (NOW + 120 * SECOND, 1)


@pytest.mark.parametrize("returned", [True, False], ids=["returned", "raised by the checkpoint"])
def test_a_run_that_is_asked_to_end_cancels_its_job(
    carry: Carry, store: DynamoJobStore, queued: Job, returned: bool
) -> None:
    def handler(_payload: Any, run: Run) -> Any:
        store.cancel(stored(store, queued), now=NOW)
        if not returned:
            run.checkpoint()
            raise AssertionError("not reached")
        return Cancelled()

    report = carry(queued, a_job_type(handler))

    job = stored(store, queued)
    assert (report.ending, job.state, job.errors) == (Ending.CANCELLED, State.CANCELLED, ())
    assert job.lifetime.expires_at is not None


@pytest.mark.parametrize("value", [Snooze(SECOND), Continue(), RetryAfter(1)], ids=["snooze", "continue", "failure"])
def test_a_job_that_was_asked_to_end_is_not_given_another_run(
    carry: Carry, store: DynamoJobStore, queued: Job, value: Any
) -> None:
    def handler(_payload: Any, _run: Run) -> Any:
        store.cancel(stored(store, queued), now=NOW)
        if isinstance(value, Exception):
            raise value
        return value

    report = carry(queued, a_job_type(handler))

    assert (report.ending, stored(store, queued).state) == (Ending.CANCELLED, State.CANCELLED)


def test_a_success_counts_even_if_its_end_was_asked_for(carry: Carry, store: DynamoJobStore, queued: Job) -> None:
    carry(queued, a_job_type(lambda _payload, _run: str(store.cancel(stored(store, queued), now=NOW).id)))

    assert stored(store, queued).state is State.SUCCEEDED


def test_a_job_whose_worker_died_after_its_end_was_asked_for_does_not_run_again(
    carry: Carry, store: DynamoJobStore, clock: Clock, queued: Job
) -> None:
    runs: list[int] = []
    store.cancel(claimed(store, queued, token="killed"), now=NOW)
    clock.now += LEASE

    report = carry(queued, a_job_type(lambda _payload, _run: runs.append(1)))

    assert (report.ending, runs) == (Ending.CANCELLED, [])


def test_a_job_whose_deadline_has_passed_dies_without_a_run(
    carry: Carry, store: DynamoJobStore, clock: Clock, queued: Job
) -> None:
    runs: list[int] = []
    job = store.insert_if_absent(with_changes(queued, id="late", deadline=NOW + SECOND))
    clock.now += 2 * SECOND

    carry(job, a_job_type(lambda _payload, _run: runs.append(1)))

    assert (stored(store, job).death, runs) == (DeathReason.DEADLINE, [])


def test_a_job_that_is_too_old_expires_without_a_run(
    carry: Carry, store: DynamoJobStore, clock: Clock, queued: Job
) -> None:
    runs: list[int] = []
    job = store.insert_if_absent(with_changes(queued, id="late", useful_until=NOW + SECOND))
    clock.now += 2 * SECOND

    report = carry(job, a_job_type(lambda _payload, _run: runs.append(1)))

    ended = stored(store, job)
    assert (report.ending, ended.state, runs) == (Ending.EXPIRED, State.EXPIRED, [])
    assert (ended.death, ended.errors, ended.due) == (None, (), None)
    assert (ended.finished_at, ended.lifetime.expires_at is not None) == (clock.now, True)


def test_follow_up_jobs_come_into_being_with_the_success(carry: Carry, store: DynamoJobStore, queued: Job) -> None:
    following = [Submission(type="test.job", payload={"n": number}) for number in (1, 2)]

    report = carry(queued, a_job_type(lambda _payload, _run: Done(then=following)))

    assert report.job is not None
    followers = [job for job in store.overdue(before=NOW) if job.parent == queued.id]
    assert sorted(job.payload.text or "" for job in followers) == ['{"n":1}', '{"n":2}']
    assert {(job.tenant, job.hops, job.state, job.trace) for job in followers} == {
        (TENANT, 1, State.QUEUED, queued.trace)
    }


@pytest.mark.parametrize(
    "submission",
    [
        Submission(type="test.unknown"),
        Submission(type="test.job", delay=timedelta(days=-1)),
        Submission(type="test.job", payload={"x": "x" * 300_000}),
    ],
    ids=["unknown type", "bad delay", "too large"],
)
def test_a_follow_up_job_that_cannot_be_accepted_kills_the_job_with_that_reason(
    carry: Carry, store: DynamoJobStore, queued: Job, submission: Submission
) -> None:
    carry(queued, a_job_type(lambda _payload, _run: Done(then=[submission])))

    assert stored(store, queued).death is DeathReason.RESULT_UNSTORABLE
    assert stored(store, queued).errors[0].message.startswith("a follow-up job was refused: ")


def test_a_checkpoint_is_saved_while_the_job_runs(carry: Carry, store: DynamoJobStore, queued: Job) -> None:
    seen = []

    def handler(_payload: Any, run: Run) -> None:
        run.checkpoint({"page": 1}, done=10, total=30)
        seen.append(stored(store, queued))
        run.checkpoint(done=20)
        raise ValueError("no")

    carry(queued, a_job_type(handler))

    running, failed = seen[0], stored(store, queued)
    assert (running.progress.checkpoint, running.progress.done, running.progress.total) == ('{"page":1}', 10, 30)
    assert (running.state, running.progress.checkpoint_at) == (State.RUNNING, NOW)
    assert running.due == NOW + INVOCATION + 2 * SECOND, "a checkpoint does not touch the lease"
    assert (failed.progress.checkpoint, failed.progress.done, failed.state) == ('{"page":1}', 20, State.RETRYING)


@pytest.mark.parametrize(
    ("state", "error_class"),
    [({"x": "x" * LARGEST_CHECKPOINT_BYTES}, "CheckpointTooLargeError"), ({1, 2}, "TypeError")],
)
def test_a_checkpoint_that_cannot_be_saved_says_so_and_saves_nothing(
    carry: Carry, store: DynamoJobStore, queued: Job, state: Any, error_class: str
) -> None:
    carry(queued, a_job_type(lambda _payload, run: run.checkpoint(state)))

    job = stored(store, queued)
    assert (job.progress.checkpoint, job.progress.checkpoint_at, job.errors[0].error_class) == (None, None, error_class)


@pytest.mark.parametrize(
    ("checkpoint", "message"),
    [("x" * LARGEST_CHECKPOINT_BYTES, "the checkpoint is 8194 bytes"), ({1}, "a checkpoint must be JSON")],
)
def test_a_continuation_whose_checkpoint_cannot_be_saved_kills_the_job(
    carry: Carry, store: DynamoJobStore, queued: Job, checkpoint: Any, message: str
) -> None:
    carry(queued, a_job_type(lambda _payload, _run: Continue(checkpoint)))

    assert stored(store, queued).death is DeathReason.RESULT_UNSTORABLE
    assert stored(store, queued).errors[0].message.startswith(message)


def test_the_checkpoint_of_a_lost_lease_is_refused(
    carry: Carry, store: DynamoJobStore, clock: Clock, queued: Job
) -> None:
    raised = []

    def handler(_payload: Any, run: Run) -> None:
        claimed(store, queued, token="another", now=NOW + timedelta(hours=1))
        try:
            run.checkpoint({"page": 9})
        except LeaseLostError as error:
            raised.append(error)
            raise

    report = carry(queued, a_job_type(handler))

    assert (len(raised), report.ending, stored(store, queued).progress.checkpoint) == (1, Ending.FENCED, None)


def test_a_run_that_ran_out_of_time_learns_it_at_its_next_checkpoint(
    store: DynamoJobStore, clock: Clock, queued: Job
) -> None:
    told: list[JobTimeoutError] = []

    def handler(_payload: Any, run: Run) -> None:
        attempt.expire()
        try:
            run.checkpoint()
        except JobTimeoutError as error:
            told.append(error)
            raise

    attempt = Attempt(
        reference_to(queued), tools(store, types_of(a_job_type(handler)), clock), deadline=NOW + INVOCATION
    )
    report = carried_out(attempt)

    assert (report.ending, len(told)) == (Ending.RETRYING, 1)
    assert stored(store, queued).errors[0].error_class == "JobTimeoutError"


def test_a_thread_that_outlives_its_run_learns_how_that_has_ended(carry: Carry, queued: Job) -> None:
    runs: list[Run] = []

    report = carry(queued, a_job_type(lambda _payload, run: runs.append(run)))

    assert report.ending is Ending.SUCCEEDED
    for late in (runs[0].checkpoint, lambda: runs[0].step("one", lambda: 1)):
        with pytest.raises(LeaseLostError, match="this run has ended as succeeded, and a thread"):
            late()


def test_a_type_that_is_quicker_than_its_lane_has_a_deadline_of_its_own(carry: Carry, queued: Job) -> None:
    deadlines = []

    carry(queued, _type(lambda _payload, run: deadlines.append(run.deadline), timeout=3 * SECOND))

    assert deadlines == [NOW + 3 * SECOND]


def test_a_cancel_request_is_an_error_that_a_handler_may_clean_up_after(
    carry: Carry, store: DynamoJobStore, queued: Job
) -> None:
    cleaned = []

    def handler(_payload: Any, run: Run) -> None:
        store.cancel(stored(store, queued), now=NOW)
        try:
            run.checkpoint()
        except CancelRequestedError:
            cleaned.append("files")
            raise

    assert (carry(queued, a_job_type(handler)).ending, cleaned) == (Ending.CANCELLED, ["files"])


@pytest.mark.parametrize(
    "value",
    [
        lambda: Snooze(30),  # type: ignore[arg-type]  # what a handler may get wrong
        lambda: Snooze(timedelta(seconds=-1)),
        lambda: Continue(after=5),  # type: ignore[arg-type]  # as above
        lambda: Continue(after=timedelta.max),
        lambda: GiveUp(None),  # type: ignore[arg-type]  # as above
    ],
    ids=["no timedelta", "negative", "no timedelta either", "for ever", "no reason"],
)
def test_an_outcome_that_makes_no_sense_fails_its_attempt_and_says_why(
    carry: Carry, store: DynamoJobStore, queued: Job, value: Callable[[], Any]
) -> None:
    report = carry(queued, a_job_type(lambda _payload, _run: value()))

    assert report.ending is Ending.RETRYING
    assert stored(store, queued).errors[0].error_class in {"TypeError", "ValueError"}


def test_only_the_last_error_has_a_traceback_and_success_drops_it(
    carry: Carry, store: DynamoJobStore, queued: Job, clock: Clock
) -> None:
    def fails_twice(_payload: Any, run: Run) -> None:
        if run.attempt <= 2:
            raise ValueError("x" * 3000)

    tracebacks = []
    for _ in range(3):
        job = stored(store, queued)
        clock.now = max(clock.now, job.due or clock.now)
        carry(job, a_job_type(fails_twice))
        tracebacks.append([error.traceback for error in stored(store, queued).errors])

    (first,), (earlier, second), after = tracebacks
    assert "ValueError: xxx" in first
    assert len(first) <= LONGEST_TRACEBACK
    assert (earlier, second, after) == ("", first, ["", ""])


def test_the_traceback_shows_the_frames_of_the_handler(carry: Carry, store: DynamoJobStore, queued: Job) -> None:
    def failing(_payload: Any, _run: Run) -> None:
        raise ValueError("no such address")

    carry(queued, a_job_type(failing))

    (error,) = stored(store, queued).errors
    frames = [line.rpartition(", in ")[2] for line in error.traceback.splitlines() if ", in " in line]
    assert [frame.rpartition(".")[2] for frame in frames] == ["failing"]
    assert error.traceback.endswith("ValueError: no such address")


def test_a_follow_up_has_its_own_tags_alone(carry: Carry, store: DynamoJobStore) -> None:
    following = [Submission(type="test.job", key="a"), Submission(type="test.job", key="b", tags=["own"])]

    carry(brought_to(store, State.QUEUED, tags=("parent",)), a_job_type(lambda _payload, _run: Done(then=following)))

    assert sorted(job.tags for job in store.overdue(before=NOW) if job.parent) == [(), ("own",)]


def test_a_follow_up_that_is_the_job_itself_is_left_out(carry: Carry, store: DynamoJobStore, clock: Clock) -> None:
    itself = Submission(type="test.job", key="mine")
    job_type = a_job_type(lambda _payload, _run: Done(then=[itself]))
    job = tools(store, types_of(job_type), clock).submit(itself, tenant=TENANT, trace="a request").job

    assert carry(job, job_type).ending is Ending.SUCCEEDED
