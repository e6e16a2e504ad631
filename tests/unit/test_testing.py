"""The testing helper for job types: one run, and many runs."""

from datetime import timedelta
from typing import Any

import pytest
from pydantic import BaseModel

from tests.support.builders import LEASE, NOW, SETTLEMENTS, a_job, a_run, reference_to, stored, with_changes
from tidemill import (
    Add,
    Cancelled,
    Continue,
    Done,
    GiveUp,
    JobType,
    PermanentJobError,
    RetryAfter,
    Run,
    Snooze,
    Unique,
    job_type,
)
from tidemill.application.ports import Checkpoint
from tidemill.domain.attempt.outcomes import Settlement
from tidemill.domain.errors import InvalidPayloadError
from tidemill.domain.job import DeathReason
from tidemill.domain.waiting.holds import HoldCause
from tidemill.dynamodb.job_store import DynamoJobStore
from tidemill.in_memory.single_job import NoJobs, OneJob
from tidemill.testing import NOON, TENANT, Drive, JobEndedError, State, Submission, run_batch, run_job

DAY = timedelta(days=1)
SECOND = timedelta(seconds=1)


class Number(BaseModel):
    n: int = 0


def _type(handler: Any, **options: Any) -> JobType:
    return job_type("test.number", payload=Number, **options)(handler)


@job_type("test.after", payload=Number)
def after(_payload: Number, _run: Run) -> None: ...


def test_a_run_that_succeeds_has_its_result() -> None:
    ran = run_job(_type(lambda payload, run: {"n": payload.n, "attempt": run.attempt}), {"n": 7}, attempt=2)

    assert (ran.state, ran.result, ran.error, ran.raised, ran.due) == (
        State.SUCCEEDED,
        {"n": 7, "attempt": 2},
        None,
        None,
        None,
    )


def test_a_payload_is_checked_as_on_submission() -> None:
    with pytest.raises(InvalidPayloadError) as refused:
        run_job(after, {"n": "many"})

    assert [fault.path for fault in refused.value.faults] == ["/payload/n"]


def test_a_failed_run_has_its_error_and_the_time_of_its_retry() -> None:
    def handler(_payload: Number, _run: Run) -> None:
        raise ValueError("no")

    ran = run_job(_type(handler, backoff_seconds=8), attempt=2)

    assert isinstance(ran.raised, ValueError)
    assert ran.state is State.RETRYING
    assert ran.error
    assert (ran.error.error_class, ran.error.message, ran.error.attempt) == ("ValueError", "no", 2)
    # Half of the ceiling, which has doubled once.
    assert ran.due == NOON + 8 * SECOND


@pytest.mark.parametrize(
    ("returned", "state", "due", "death"),
    [
        (Snooze(DAY), State.SCHEDULED, NOON + DAY, None),
        (Snooze(SECOND), State.QUEUED, NOON + SECOND, None),
        (Continue({"page": 2}), State.QUEUED, NOON, None),
        (GiveUp("pointless"), State.DEAD, None, DeathReason.GAVE_UP),
        (Cancelled(), State.CANCELLED, None, None),
        pytest.param(object(), State.DEAD, None, DeathReason.RESULT_UNSTORABLE, id="an object"),
        (Continue("x" * 9000), State.DEAD, None, DeathReason.RESULT_UNSTORABLE),
    ],
    ids=str,
)
def test_each_outcome_is_settled_as_by_a_worker(returned: Any, state: State, due: Any, death: Any) -> None:
    ran = run_job(_type(lambda _payload, _run: returned))

    assert (ran.state, ran.due, ran.job.death) == (state, due, death)


@pytest.mark.parametrize(
    ("raised", "state"),
    [(PermanentJobError("never"), State.DEAD), (RetryAfter(60), State.RETRYING), (SystemExit(1), State.RETRYING)],
    ids=repr,
)
def test_each_error_is_settled_as_by_a_worker(raised: BaseException, state: State) -> None:
    def handler(_payload: Number, _run: Run) -> None:
        raise raised

    assert run_job(_type(handler)).state is state


def test_a_run_shows_the_writes_and_follow_ups_of_its_success() -> None:
    write = {"Put": {"TableName": "own", "Item": {"pk": {"S": "x"}}}}
    then = [
        Submission(type="test.after", payload={"n": 1}, delay=DAY),
        Submission(type="test.after", unique=Unique(period=DAY)),
    ]

    ran = run_job(_type(lambda _payload, _run: Done(result=1, writes=[write], then=then)), known=[after])

    assert (ran.result, ran.writes, ran.enqueued) == (1, (write,), tuple(then))


def test_an_invalid_follow_up_kills_the_job() -> None:
    then = [Submission(type="test.after"), Submission(type="test.after", payload={"n": "many"})]

    ran = run_job(_type(lambda _payload, _run: Done(then=then)), known=[after])

    assert (ran.state, ran.enqueued) == (State.DEAD, ())
    assert ran.error
    assert "/payload/n" in ran.error.message


@pytest.mark.parametrize("write", ["x", None, {}, {"Foo": {}}, {"Put": {}, "Delete": {}}], ids=str)
def test_a_write_that_no_transaction_takes_is_refused_as_in_a_worker(write: Any) -> None:
    ran = run_job(_type(lambda _payload, _run: Done(1, writes=[write])))

    assert (ran.state, ran.result, ran.writes) == (State.RETRYING, None, ())
    assert ran.error
    assert (ran.error.error_class, ran.error.message[:35]) == (
        "EffectRefusedError",
        "the handler's writes are not valid:",
    )


@pytest.mark.parametrize(
    ("jobs", "adds", "state"), [(98, 9, State.SUCCEEDED), (99, 9, State.DEAD), (99, 0, "succeeded")]
)
def test_a_success_that_one_transaction_cannot_hold_kills_the_job(jobs: int, adds: int, state: State) -> None:
    done = Done(
        then=[Submission(type="test.after", payload={"n": n}) for n in range(jobs)],
        writes=[Add("own", {"pk": {"S": "sum"}}, {"n": 1})] * adds,
    )

    ran = run_job(_type(lambda _payload, _run: done), known=[after])

    assert (ran.state, len(ran.enqueued), len(ran.writes)) == (state, *((0, 0) if ran.error else (jobs, adds)))
    assert ran.error is None or "101 transaction entries, but the limit is 100" in ran.error.message


def test_a_follow_up_of_an_unknown_type_is_reported() -> None:
    ran = run_job(_type(lambda _payload, _run: Done(then=[Submission(type="test.after")])))

    assert ran.error
    assert "unknown job type 'test.after'" in ran.error.message


def test_a_run_resumes_from_a_checkpoint_and_saves_its_own() -> None:
    def handler(_payload: Number, run: Run) -> Any:
        for page in range(run.resumed_from["page"], 4):
            run.checkpoint({"page": page + 1}, done=page + 1, total=4)
        return run.resumed_from

    ran = run_job(_type(handler), checkpoint={"page": 2})

    assert (ran.result, ran.checkpoints) == ({"page": 2}, ({"page": 3}, {"page": 4}))
    assert (ran.job.progress.done, ran.job.progress.total) == (4, 4)


def test_a_checkpoint_that_is_too_large_kills_the_job() -> None:
    ran = run_job(_type(lambda _payload, run: run.checkpoint("x" * 9000)))

    assert (ran.state, ran.job.death) == (State.DEAD, DeathReason.PERMANENT)


def test_a_handler_gets_the_facts_of_its_run() -> None:
    seen: list[Run] = []
    now = NOON + DAY

    run_job(_type(lambda _payload, run: seen.append(run), timeout_seconds=60, max_attempts=3), now=now)

    (run,) = seen
    assert (run.tenant, run.attempt, run.max_attempts, run.submitted_at) == (TENANT, 1, 3, now)
    assert run.deadline == now + 60 * SECOND
    assert run.idempotency_key == run.job_id


def test_a_test_reads_what_a_handler_logs(caplog: pytest.LogCaptureFixture) -> None:
    def handler(payload: Number, run: Run) -> None:
        run.log.warning("sent %d", payload.n, extra={"mails": payload.n})

    run_job(_type(handler), {"n": 3})

    (record,) = caplog.records
    assert (record.name, record.getMessage(), vars(record)["mails"]) == ("tidemill.run", "sent 3", 3)


def test_a_job_is_driven_through_its_retries_to_its_end() -> None:
    def handler(_payload: Number, run: Run) -> int:
        if run.attempt < 3:
            raise ValueError("not yet")
        return run.attempt

    drive = Drive(_type(handler, backoff_seconds=100))
    first, second, third = drive.run(), drive.run(), drive.run()

    assert [first.due, second.due, third.due] == [NOON + 50 * SECOND, NOON + 150 * SECOND, None]
    assert (drive.now, third.state, third.error, third.result) == (NOON + 150 * SECOND, State.SUCCEEDED, None, 3)
    assert [error.attempt for error in third.job.errors] == [1, 2]
    with pytest.raises(JobEndedError):
        drive.run()


def test_a_job_that_always_fails_dies_of_its_attempts() -> None:
    def handler(_payload: Number, _run: Run) -> None:
        raise ValueError("no")

    ran = Drive(_type(handler, max_attempts=3)).run_until_it_ends()

    assert (ran.state, ran.job.death, ran.job.attempt) == (State.DEAD, DeathReason.EXHAUSTED, 3)


def test_a_job_that_continues_has_a_fresh_set_of_attempts_and_counts_its_hops() -> None:
    def handler(_payload: Number, run: Run) -> Any:
        page = (run.resumed_from or 0) + 1
        return Continue(page) if page < 5 else page

    ran = Drive(_type(handler)).run_until_it_ends()

    assert (ran.result, ran.job.hops, ran.job.attempt) == (5, 4, 1)


def test_a_run_has_the_hops_so_far() -> None:
    drive = Drive(_type(lambda _payload, run: Snooze(DAY) if run.hops < 2 else run.hops))

    assert (drive.run().state, drive.run().state, drive.run().result) == (State.SCHEDULED, State.SCHEDULED, 2)


def test_a_job_that_snoozes_for_ever_dies_of_its_hops() -> None:
    ran = Drive(_type(lambda _payload, _run: Snooze(DAY), max_hops=5)).run_until_it_ends()

    assert (ran.job.death, ran.job.hops) == (DeathReason.HOPS, 6)


def test_a_job_that_does_not_end_raises() -> None:
    with pytest.raises(AssertionError, match="after 3 runs the job is still scheduled"):
        Drive(_type(lambda _payload, _run: Snooze(DAY))).run_until_it_ends(most=3)


def test_the_next_checkpoint_raises_after_a_cancel_request() -> None:
    def handler(_payload: Number, run: Run) -> None:
        drive.cancel()
        run.checkpoint(1)
        raise AssertionError("it goes on")

    drive = Drive(_type(handler))

    assert drive.run().state is State.CANCELLED


def test_a_cancel_request_ends_the_job_with_its_run() -> None:
    def handler(_payload: Number, _run: Run) -> Snooze:
        drive.cancel()
        return Snooze(DAY)

    drive = Drive(_type(handler))

    assert drive.run().state is State.CANCELLED


def test_a_submission_sets_the_start_and_the_deadline_of_its_job() -> None:
    drive = Drive(after, delay=DAY, deadline=NOON + 2 * DAY)
    drive.now = NOON + 3 * DAY

    assert drive.run().job.death is DeathReason.DEADLINE
    assert Drive(after, delay=DAY).run().job.lease.claimed_at == NOON + DAY


@pytest.mark.parametrize(
    "settlement",
    [
        *SETTLEMENTS.values(),
        Settlement(state=State.QUEUED, due=NOW, attempt=0, hops=3, checkpoint="2"),
        Settlement(state=State.SCHEDULED, due=NOW + DAY, attempt=1, holds=2, hold_cause=HoldCause.LIMIT),
        Settlement(state=State.CANCELLED),
    ],
    ids=lambda settlement: settlement.state,
)
def test_the_document_in_process_equals_the_document_in_the_table(
    store: DynamoJobStore, settlement: Settlement
) -> None:
    job = a_job(attempt=1, holds=1, hold_cause=HoldCause.LIMIT)
    one = OneJob(job)
    saved = Checkpoint(state="1", done=1, total=2)
    store.insert_if_absent(job)
    for each in (store, one):
        claim = each.claim(reference_to(job), token="token", now=NOW, lease_end=NOW + LEASE)
        assert not each.checkpoint(claim, saved, now=NOW)
        each.settle(claim, settlement, now=NOW + SECOND)

    assert one.job == with_changes(stored(store, job), expires_at=None)


def test_a_job_in_process_is_alone_in_its_group_and_keeps_its_claim() -> None:
    one = OneJob(a_job())

    assert one.get(TENANT, one.job.id) is one.job
    assert one.advance(TENANT, "group", now=NOW) is None
    with pytest.raises(AssertionError, match="no DLQ message arrives here"):
        one.redrive(one.job, token="token", now=NOW, by="ada")
    with pytest.raises(AssertionError, match="no transaction here conflicts"):
        one.release(one.job, now=NOW, due=NOW)
    with pytest.raises(AssertionError, match="no answer is lost here"):
        one.unclaim(reference_to(one.job), token="token", now=NOW)


def test_a_submission_in_process_is_accepted_and_not_kept() -> None:
    jobs = NoJobs()
    job = a_job()

    assert jobs.insert_if_absent(job) is job
    assert jobs.get(TENANT, job.id) is None


def test_a_handler_reads_the_flags_that_the_test_sets() -> None:
    read = _type(lambda _payload, run: dict(run.flags))

    assert run_job(read, flags={"colour": "blue"}).result == {"colour": "blue"}
    assert run_job(read).result == {}


def test_a_handler_reads_the_level_of_strain_that_the_test_sets() -> None:
    read = _type(lambda _payload, run: run.strained)

    assert run_job(read, strained=2).result == 2
    assert run_job(read).result == 0


def _doubled(payloads: list[Number], runs: list[Run]) -> list[Any]:
    return [
        PermanentJobError("odd") if payload.n % 2 else {"n": 2 * payload.n, "id": run.job_id, "jobs": len(runs)}
        for payload, run in zip(payloads, runs, strict=True)
    ]


def test_a_batch_has_a_run_for_each_payload() -> None:
    first, second, third = run_batch(_type(_doubled, batch=100), [{"n": 0}, {"n": 1}, {"n": 2}])

    assert (first.result, third.result) == ({"n": 0, "id": "job-1", "jobs": 3}, {"n": 4, "id": "job-3", "jobs": 3})
    assert (second.state, second.error and second.error.message) == (State.DEAD, "odd")


def test_a_batch_is_called_with_no_more_jobs_than_its_type_allows() -> None:
    ran = run_batch(_type(_doubled, batch=2), [{"n": 0}, {"n": 2}, {"n": 4}])

    assert sorted(one.result["jobs"] for one in ran) == [1, 2, 2]
    assert run_batch(_type(_doubled, batch=2), []) == []


def test_a_batch_handler_that_raises_fails_the_run_that_it_is_about_and_no_other() -> None:
    def handler(payloads: list[Number], _runs: list[Run]) -> list[int]:
        if any(payload.n == 1 for payload in payloads):
            raise KeyError("poison")
        return [payload.n for payload in payloads]

    good, bad = run_batch(_type(handler, batch=100), [{"n": 0}, {"n": 1}])

    assert (good.state, good.result) == (State.SUCCEEDED, 0)
    assert (bad.state, bad.error and bad.error.error_class) == (State.RETRYING, "KeyError")


def test_a_run_of_a_batch_handler_has_one_payload_and_one_run() -> None:
    ran = run_job(_type(_doubled, batch=100), {"n": 3 - 1})

    assert ran.result == {"n": 4, "id": "job", "jobs": 1}


def test_a_run_that_a_test_makes_without_more_is_the_first_of_its_job() -> None:
    run = a_run()

    assert (run.attempt, run.hops, run.resumed_from, run.waited_for) == (1, 0, None, None)
    assert (run.parent, run.group, run.flow, run.traceparent) == (None, None, None, None)
    assert (dict(run.parents), dict(run.signals)) == ({}, {})
