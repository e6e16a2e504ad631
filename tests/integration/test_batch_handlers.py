"""Batch handlers: jobs that a worker gets at a time share one call, and each keeps its own run."""

import json
import threading
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tests.support.batch_calls import BATCH, TYPE, a_batch, each, jobs_of, run_held
from tests.support.deployed_functions import TENANT, Mill
from tests.support.jobs.batched import BatchScript
from tests.support.jobs.scripted import Anything
from tests.support.patience import PATIENCE_SECONDS
from tidemill import (
    BreakerOpenError,
    Done,
    PermanentJobError,
    RetryAfter,
    Run,
    Snooze,
    StoreUnavailableError,
    Submission,
    TransactionConflictError,
    composition,
)
from tidemill.application.batch_handlers import joint_calls
from tidemill.domain.states import State
from tidemill.domain.waiting.holds import HoldCause
from tidemill.dynamodb.document import key


def test_the_jobs_of_a_batch_share_one_call_and_each_has_its_own_outcome(mill: Mill, calls: BatchScript) -> None:
    calls.handler = each(lambda payload, run: {"n": payload.n, "id": run.job_id})
    job_ids, event = a_batch(mill)

    assert mill.work(event) == []

    assert calls.calls == [list(range(BATCH))]
    results = [job.result for job in jobs_of(mill, job_ids)]
    assert results == [f'{{"n":{number},"id":"{job_id}"}}' for number, job_id in enumerate(job_ids)]
    assert {job.attempt for job in jobs_of(mill, job_ids)} == {1}


def test_a_call_has_at_most_as_many_jobs_as_the_type_says(mill: Mill, calls: BatchScript) -> None:
    _, event = a_batch(mill, job_type="test.batched_by_four")

    mill.work(event)

    assert sorted(len(call) for call in calls.calls) == [2, 4, 4]
    assert sorted(number for call in calls.calls for number in call) == list(range(BATCH))


def test_jobs_of_two_tenants_share_no_call_so_that_neither_sees_what_the_other_raises_or_prints(
    mill: Mill, calls: BatchScript, capsys: pytest.CaptureFixture[str]
) -> None:
    def handler(payloads: list[Anything], _runs: list[Run]) -> None:
        print(f"the cards are {[payload.n for payload in payloads]}")  # noqa: T201 - what the test is about
        raise ValueError(f"cannot charge {[payload.n for payload in payloads]}")

    calls.handler = handler
    own = [mill.accepted({"n": number}, job_type=TYPE) for number in (41111, 41112)]
    submit = composition.parts().submit
    foreign = [
        submit(Submission(type=TYPE, payload={"n": number}), tenant="another", trace="").job.id
        for number in (52222, 52223)
    ]
    mill.publish()

    mill.work(mill.receive())

    assert not [call for call in calls.calls if min(call) < 50_000 < max(call)]
    assert sorted(call for call in calls.calls if len(call) > 1) == [[41111, 41112], [52222, 52223]]
    printed = [json.loads(line) for line in capsys.readouterr().out.splitlines() if "the cards" in line]
    for tenant, job_ids, card in ((TENANT, own, "5222"), ("another", foreign, "4111")):
        documents = [composition.parts().store.get(tenant, job_id) for job_id in job_ids]
        lines = [line for line in printed if line["tenant"] == tenant]
        assert lines
        assert card not in f"{documents}{lines}"


def test_jobs_of_other_types_in_the_batch_hold_up_no_call(mill: Mill, calls: BatchScript) -> None:
    calls_meet_each_other = threading.Barrier(2, timeout=PATIENCE_SECONDS)
    mill.script.handler = lambda _payload, _run: bool(calls_meet_each_other.wait() + 1)
    calls.handler = lambda payloads, _runs: [bool(calls_meet_each_other.wait() + 1)] * len(payloads)
    together = [mill.accepted({"n": number}, job_type=TYPE) for number in range(3)]
    other = mill.accepted({"n": 9})
    mill.publish()

    assert mill.work(mill.receive()) == []

    assert calls.calls == [[0, 1, 2]]
    assert {job.state for job in jobs_of(mill, [*together, other])} == {State.SUCCEEDED}


def test_each_outcome_settles_its_own_job(mill: Mill, calls: BatchScript) -> None:
    outcomes = [
        "done",
        PermanentJobError("never"),
        RetryAfter(300),
        Snooze(timedelta(minutes=1)),
        ValueError("no such thing"),
        Done(result=1, then=[Submission(type="test.noop")]),
    ]
    calls.handler = each(lambda payload, _run: outcomes[payload.n])
    job_ids, event = a_batch(mill, len(outcomes))

    assert mill.work(event) == []

    jobs = jobs_of(mill, job_ids)
    states = [State.SUCCEEDED, State.DEAD, State.RETRYING, State.QUEUED, State.RETRYING, State.SUCCEEDED]
    assert [job.state for job in jobs] == states
    assert [job.attempt for job in jobs] == [1, 1, 1, 0, 1, 1]
    assert (jobs[4].errors[0].error_class, jobs[4].errors[0].message) == ("ValueError", "no such thing")


def _failing(*numbers: int) -> Callable[[list[Anything], list[Run]], list[int]]:
    def handler(payloads: list[Anything], _runs: list[Run]) -> list[int]:
        if bad := [payload.n for payload in payloads if payload.n in numbers]:
            raise PermanentJobError(f"poison {bad}")
        return [payload.n for payload in payloads]

    return handler


def test_a_payload_on_which_the_handler_raises_costs_the_others_no_attempt(
    mill: Mill, calls: BatchScript, capsys: pytest.CaptureFixture[str]
) -> None:
    calls.handler = _failing(4)
    job_ids, event = a_batch(mill)

    assert mill.work(event) == []

    jobs = jobs_of(mill, job_ids)
    poison = jobs.pop(4)
    assert (poison.state, poison.attempt, poison.errors[-1].message) == (State.DEAD, 1, "poison [4]")
    assert {(job.state, job.attempt, job.errors) for job in jobs} == {(State.SUCCEEDED, 1, ())}
    # The call of all, and two for each halving at most.
    assert len(calls.calls) <= 9
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    failed = [line for line in lines if line["message"] == "batch handler failed"]
    assert [(line["tenant"], line["jobs"]) for line in failed[:1]] == [(TENANT, BATCH)]
    assert all("PermanentJobError: poison [4]" in line["exception"] for line in failed)


def test_a_handler_that_fails_for_each_job_is_called_a_few_times_and_then_for_each_job_alone(
    mill: Mill, calls: BatchScript
) -> None:
    calls.handler = _failing(*range(BATCH))
    job_ids, event = a_batch(mill)

    mill.work(event)

    assert len(calls.calls) == 6
    alone = sum(len(call) == 1 for call in calls.calls)
    held = [job for job in jobs_of(mill, job_ids) if not job.state.terminal]
    assert len(held) == BATCH - alone
    assert {(job.state, job.attempt, job.errors, job.holds.cause) for job in held} == {
        (State.QUEUED, 0, (), HoldCause.CALL)
    }

    run_held(mill, job_ids)

    assert {len(call) for call in calls.calls[6:]} == {1}
    assert {(job.state, job.attempt, len(job.errors)) for job in jobs_of(mill, job_ids)} == {(State.DEAD, 1, 1)}


def test_a_call_that_asks_for_time_gets_it_and_costs_no_attempt(mill: Mill, calls: BatchScript) -> None:
    def handler(_payloads: list[Anything], _runs: list[Run]) -> None:
        raise RetryAfter(300)

    calls.handler = handler
    job_ids, event = a_batch(mill, 3)
    now = mill.now()

    mill.work(event)

    assert len(calls.calls) == 1
    for job in jobs_of(mill, job_ids):
        assert (job.attempt, job.holds.cause, job.errors) == (0, HoldCause.CALL, ())
        assert job.due
        assert job.due >= now + timedelta(seconds=300)


@pytest.mark.parametrize(
    ("returned", "said"),
    [
        ([], "a batch handler must return one outcome for each job; it returned 0 for 1 jobs"),
        ([1] * 4, "a batch handler must return one outcome for each job; it returned 4 for 1 jobs"),
        (None, "a batch handler must return a list with one outcome for each job; it returned NoneType"),
        ("abc", "a batch handler must return a list with one outcome for each job; it returned str"),
        ({0: 1, 1: 2, 2: 3}, "a batch handler must return a list with one outcome for each job; it returned dict"),
    ],
)
def test_wrong_outcomes_fail_each_job_by_itself(mill: Mill, calls: BatchScript, returned: Any, said: str) -> None:
    calls.handler = lambda _payloads, _runs: returned
    job_ids, event = a_batch(mill, 3)

    mill.work(event)
    run_held(mill, job_ids)

    for job in jobs_of(mill, job_ids):
        assert (job.state, job.attempt) in {(State.RETRYING, 1), (State.RETRYING, 2)}
        assert {(error.error_class, error.message) for error in job.errors} == {("BatchOutcomesError", said)}


@pytest.mark.parametrize("error", [StoreUnavailableError("no response"), TransactionConflictError("busy")])
def test_an_outage_in_the_handler_costs_no_attempt(mill: Mill, calls: BatchScript, error: Exception) -> None:
    def handler(_payloads: list[Anything], _runs: list[Run]) -> None:
        raise error

    calls.handler = handler
    job_ids, event = a_batch(mill, 3)

    mill.work(event)

    assert {(job.state, job.attempt) for job in jobs_of(mill, job_ids)} == {(State.QUEUED, 0)}


def test_an_open_breaker_in_the_handler_costs_no_attempt(mill: Mill, calls: BatchScript) -> None:
    def handler(_payloads: list[Anything], _runs: list[Run]) -> None:
        raise BreakerOpenError("payments")

    calls.handler = handler
    job_ids, event = a_batch(mill, 3)

    mill.work(event)

    jobs = jobs_of(mill, job_ids)
    # Parked, or released again, since no breaker of that name is open in fact.
    assert {(job.attempt, job.errors, job.wait and job.wait.key) for job in jobs} == {(0, (), "payments")}


def test_a_breaker_counts_a_call_of_several_jobs_once(mill: Mill, calls: BatchScript) -> None:
    def handler(_payloads: list[Anything], _runs: list[Run]) -> None:
        raise ConnectionError("refused")

    calls.handler = handler
    _, event = a_batch(mill, job_type="test.batched_dependent")

    mill.work(event)

    breaker = composition.parts().breakers.look("meter", afresh=True)
    # After the first call, some of its jobs had another one.
    assert 1 <= breaker.failures < len(calls.calls) < BATCH
    assert (breaker.calls, breaker.closed) == (breaker.failures, True)


def test_what_is_printed_belongs_to_no_single_job_and_a_line_of_a_run_to_its_own(
    mill: Mill, calls: BatchScript, capsys: pytest.CaptureFixture[str]
) -> None:
    def handler(payloads: list[Anything], runs: list[Run]) -> list[None]:
        print("for all of them")  # noqa: T201 - what the test is about
        for run in runs:
            run.log.info("for one of them")
        return [None] * len(payloads)

    calls.handler = handler
    job_ids, event = a_batch(mill, 3)

    mill.work(event)

    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines() if "of them" in line]
    (shared,) = [line for line in lines if line["message"] == "for all of them"]
    assert (shared["tenant"], shared["job_type"], shared["jobs"], shared["request_id"]) == (TENANT, TYPE, 3, "request")
    assert "job_id" not in shared
    assert sorted(line["job_id"] for line in lines if line["message"] == "for one of them") == sorted(job_ids)


@pytest.mark.parametrize("use", [lambda run: run.checkpoint(), lambda run: run.step("a", int)])
def test_what_may_end_the_call_of_others_is_refused(mill: Mill, calls: BatchScript, use: Callable[[Run], Any]) -> None:
    calls.handler = each(lambda _payload, run: use(run))
    (job_id,), event = a_batch(mill, 1)

    mill.work(event)

    (error,) = mill.job(job_id).errors
    assert error.error_class == "BatchHandlerError"
    assert "does not work in a batch handler" in error.message


def test_a_cancelled_job_is_not_in_the_call(mill: Mill, calls: BatchScript) -> None:
    job_ids, event = a_batch(mill, 3)
    mill.table.client.update_item(
        TableName=mill.table.name,
        Key=key(TENANT, job_ids[1]),
        UpdateExpression="SET #asked = :now",
        ExpressionAttributeNames={"#asked": "cancel_requested_at"},
        ExpressionAttributeValues={":now": {"N": str(round(mill.now().timestamp() * 1000))}},
    )

    mill.work(event)

    assert calls.calls == [[0, 2]]
    states = [job.state for job in jobs_of(mill, job_ids)]
    assert states == [State.SUCCEEDED, State.CANCELLED, State.SUCCEEDED]


def test_a_claim_that_does_not_return_holds_up_a_call_for_a_bounded_time_only(
    mill: Mill, calls: BatchScript, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(joint_calls, "LONGEST_WAIT_FOR_CLAIMS_SECONDS", 0.01)
    called = threading.Event()

    def handler(payloads: list[Anything], _runs: list[Run]) -> list[None]:
        called.set()
        return [None] * len(payloads)

    calls.handler = handler
    job_ids, event = a_batch(mill, 3)
    claim, seen = mill.client.update_item, Counter[str]()
    lock = threading.Lock()

    def late(**request: Any) -> Any:
        with lock:
            seen["claims"] += 1
            waits = seen["claims"] == 3
        if waits:
            assert called.wait(PATIENCE_SECONDS)
        return claim(**request)

    monkeypatch.setattr(mill.client, "update_item", late, raising=False)

    mill.work(event)

    assert {job.state for job in jobs_of(mill, job_ids)} == {State.SUCCEEDED}
    assert sorted(number for call in calls.calls for number in call) == [0, 1, 2]
    assert len(calls.calls) >= 2


def test_jobs_of_one_group_run_one_after_another(mill: Mill, calls: BatchScript) -> None:
    for number in range(3):
        mill.accepted({"n": number}, job_type=TYPE, group="orders")
    mill.accepted({"n": 9}, job_type=TYPE)

    mill.run()

    order = [number for call in calls.calls for number in call if number != 9]
    assert order == [0, 1, 2]
