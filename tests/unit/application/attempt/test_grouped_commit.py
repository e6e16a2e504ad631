"""Which claims and settles of a batch are made together, and what is left to the calls of single jobs."""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any

import pytest

from tests.support.builders import LEASE, NOW, SECOND, SETTLEMENTS, a_job, a_job_type
from tests.support.configurations import configured, overridden
from tests.support.patience import PATIENCE_SECONDS
from tidemill.application.attempt import grouped_commit
from tidemill.application.attempt.grouped_commit import Answer, FirstClaim, GroupedCommit
from tidemill.application.configuration import nothing_set
from tidemill.application.job_types import JobTypes
from tidemill.application.ports import Settling
from tidemill.domain.attempt.outcomes import Settlement
from tidemill.domain.dispatch.job_message import Reference, reference_to
from tidemill.domain.errors import WriteRefusedError
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State, Write

TYPES = JobTypes(
    {
        "test.job": replace(a_job_type(max_attempts=3), grouped=True),
        "test.alone": a_job_type(name="test.alone", max_attempts=3),
    }
)


class Store:
    """`Commit` of single jobs."""

    def __init__(self) -> None:
        self.claimed: list[str] = []
        self.settled: list[str] = []

    def claim(self, reference: Reference, *, token: str, now: datetime, lease_end: datetime, worker: str = "") -> Job:
        self.claimed.append(reference.job_id)
        return a_job(id=reference.job_id, owner=token, claimed_at=now, due=lease_end)

    def settle(self, job: Job, settlement: Settlement, *, now: datetime) -> Sequence[Job]:
        self.settled.append(job.id)
        return (job,)


class Writes:
    """Grants everything, unless a test answers."""

    def __init__(self) -> None:
        self.claims: list[list[str]] = []
        self.successes: list[list[str]] = []
        self.answer: Callable[[str, Job], Answer] = lambda _id, job: job

    def claim(self, claims: Sequence[FirstClaim]) -> Sequence[Answer]:
        self.claims.append(sorted(each.reference.job_id for each in claims))
        return [
            self.answer(each.reference.job_id, a_job(id=each.reference.job_id, owner=each.token)) for each in claims
        ]

    def settle(self, successes: Sequence[Settling]) -> Sequence[Answer]:
        self.successes.append(sorted(each.job.id for each in successes))
        return [self.answer(each.job.id, each.job) for each in successes]


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def writes() -> Writes:
    return Writes()


@pytest.fixture
def commit(store: Store, writes: Writes) -> GroupedCommit:
    return GroupedCommit(store, writes, TYPES, nothing_set)


def _claim_all(commit: GroupedCommit, references: Sequence[Reference], *, now: datetime = NOW) -> list[Any]:
    def claim(reference: Reference) -> Any:
        try:
            return commit.claim(reference, token=f"of {reference.job_id}", now=now, lease_end=NOW + LEASE)
        except WriteRefusedError as refused:
            return refused

    with ThreadPoolExecutor(max_workers=len(references)) as pool:
        return list(pool.map(claim, references))


def _settle_all(commit: GroupedCommit, jobs: Sequence[Job], settlement: Settlement) -> list[Any]:
    with ThreadPoolExecutor(max_workers=len(jobs)) as pool:
        return list(pool.map(lambda job: commit.settle(job, settlement, now=NOW), jobs))


def _references(count: int = 3, **changes: Any) -> list[Reference]:
    return [reference_to(a_job(**changes)) for _ in range(count)]


def _ids(references: Sequence[Reference]) -> list[str]:
    return sorted(reference.job_id for reference in references)


def test_first_attempts_are_claimed_together_each_with_its_own_token(
    commit: GroupedCommit, store: Store, writes: Writes
) -> None:
    references = _references()
    commit.expect(references)

    jobs = _claim_all(commit, references)

    assert writes.claims == [_ids(references)]
    assert [job.lease.owner for job in jobs] == [f"of {reference.job_id}" for reference in references]
    assert store.claimed == []


def test_successes_of_jobs_that_were_claimed_together_are_settled_together(
    commit: GroupedCommit, store: Store, writes: Writes
) -> None:
    references = _references()
    commit.expect(references)
    jobs = _claim_all(commit, references)

    assert _settle_all(commit, jobs, SETTLEMENTS[State.SUCCEEDED]) == [(), (), ()]

    assert writes.successes == [_ids(references)]
    assert store.settled == []


@pytest.mark.parametrize(
    "changes",
    [
        {"type": "test.alone"},
        {"type": "test.unknown"},
        {"generation": 2},
        {"attempt": 1},
        {"nudged_at": NOW},
        {"group": "a group"},
        {"state": State.RETRYING},
    ],
    ids=str,
)
def test_any_other_message_is_claimed_alone(
    commit: GroupedCommit, store: Store, writes: Writes, changes: dict[str, Any]
) -> None:
    references = _references(2, **changes)
    commit.expect(references)

    _claim_all(commit, references)

    assert sorted(store.claimed) == _ids(references)
    assert writes.claims == []


def test_one_alone_is_claimed_alone(commit: GroupedCommit, store: Store, writes: Writes) -> None:
    """One call is less than a claim and a read. A job that came twice is one."""
    (reference,) = _references(1)
    commit.expect([reference, reference])

    _claim_all(commit, [reference])

    assert (store.claimed, writes.claims) == ([reference.job_id], [])


def test_a_job_that_comes_twice_is_claimed_together_with_others_once(
    commit: GroupedCommit, store: Store, writes: Writes
) -> None:
    first, second = _references(2)
    commit.expect([first, second, first])

    _claim_all(commit, [first, second])
    commit.claim(first, token="again", now=NOW, lease_end=NOW + LEASE)

    assert writes.claims == [_ids([first, second])]
    assert store.claimed == [first.job_id]


def test_a_job_that_is_not_due_is_claimed_alone(commit: GroupedCommit, store: Store, writes: Writes) -> None:
    """Its claim is refused, and says until when."""
    early = reference_to(a_job(due=NOW + SECOND))
    ready = _references(2)
    commit.expect([early, *ready])

    _claim_all(commit, [early, *ready])

    assert store.claimed == [early.job_id]
    assert writes.claims == [_ids(ready)]


def test_a_type_that_an_operator_allows_fewer_attempts_is_claimed_alone(store: Store, writes: Writes) -> None:
    configuration = configured(overridden("test.job.max_attempts", 2))
    commit = GroupedCommit(store, writes, TYPES, lambda: configuration)
    references = _references(2)
    commit.expect(references)

    _claim_all(commit, references)

    assert (sorted(store.claimed), writes.claims) == (_ids(references), [])


def test_what_a_call_leaves_open_is_claimed_alone_with_the_same_token(
    commit: GroupedCommit, store: Store, writes: Writes
) -> None:
    references = _references()
    left = references[0].job_id
    writes.answer = lambda job_id, job: None if job_id == left else job
    commit.expect(references)

    jobs = _claim_all(commit, references)

    assert store.claimed == [left]
    assert jobs[0].lease.owner == f"of {left}"
    # It settles alone, too.
    _settle_all(commit, jobs, SETTLEMENTS[State.SUCCEEDED])
    assert store.settled == [left]


def test_a_refusal_is_raised(commit: GroupedCommit, store: Store, writes: Writes) -> None:
    references = _references(2)
    refusal = WriteRefusedError(Write.CLAIM, a_job())
    writes.answer = lambda job_id, job: refusal if job_id == references[0].job_id else job
    commit.expect(references)

    answers = _claim_all(commit, references)

    assert answers[0] is refusal
    assert store.claimed == []


def test_any_other_outcome_is_settled_alone_and_keeps_no_other_waiting(
    commit: GroupedCommit, store: Store, writes: Writes
) -> None:
    references = _references()
    commit.expect(references)
    failed, *succeeded = _claim_all(commit, references)

    commit.settle(failed, SETTLEMENTS[State.RETRYING], now=NOW)
    _settle_all(commit, succeeded, SETTLEMENTS[State.SUCCEEDED])

    assert store.settled == [failed.id]
    assert writes.successes == [sorted(job.id for job in succeeded)]


@pytest.mark.parametrize("more", [{"writes": ({"Put": {}},)}, {"follow_ups": (a_job(),)}], ids=["writes", "follow-ups"])
def test_a_success_that_takes_a_transaction_is_settled_alone(
    commit: GroupedCommit, store: Store, writes: Writes, more: dict[str, Any]
) -> None:
    references = _references(2)
    commit.expect(references)
    jobs = _claim_all(commit, references)

    _settle_all(commit, jobs, replace(SETTLEMENTS[State.SUCCEEDED], **more))

    assert sorted(store.settled) == _ids(references)
    assert writes.successes == []


def test_an_attempt_that_ended_otherwise_is_not_waited_for(commit: GroupedCommit, writes: Writes) -> None:
    references = _references()
    commit.expect(references)
    commit.leave(references[0])

    jobs = _claim_all(commit, references[1:])
    commit.leave(references[1])

    assert writes.claims == [_ids(references[1:])]
    _settle_all(commit, jobs[1:], SETTLEMENTS[State.SUCCEEDED])


def test_a_message_that_was_left_out_leaves_the_claims_of_others(
    commit: GroupedCommit, store: Store, writes: Writes
) -> None:
    references = _references(2)

    _claim_all(commit, references)

    assert (sorted(store.claimed), writes.claims) == (_ids(references), [])


def test_the_others_do_not_wait_for_a_job_that_is_claimed_before_its_time(
    commit: GroupedCommit, store: Store, writes: Writes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock of the publisher was ahead of the clock of this worker."""
    monkeypatch.setattr(grouped_commit, "LONGEST_WAIT_SECONDS", PATIENCE_SECONDS)
    early, *others = [*_references(1, due=NOW + SECOND), *_references(2)]
    commit.expect([early, *others])
    began = time.monotonic()

    _claim_all(commit, [early])
    jobs = _claim_all(commit, others)
    _settle_all(commit, jobs, SETTLEMENTS[State.SUCCEEDED])

    assert time.monotonic() - began < PATIENCE_SECONDS
    assert (store.claimed, writes.claims, writes.successes) == ([early.job_id], [_ids(others)], [_ids(others)])
