"""The joint settles of a batch: what each job hears, and what is settled by a call of its own."""

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.builders import NOW, SETTLEMENTS, a_job
from tests.support.patience import PATIENCE_SECONDS
from tests.unit.application.attempt.test_grouped_commit import (
    TYPES,
    Store,
    Writes,
    _claim_all,
    _ids,
    _references,
    _settle_all,
)
from tidemill.application.attempt import grouped_commit
from tidemill.application.attempt.grouped_commit import GroupedCommit
from tidemill.application.configuration import nothing_set
from tidemill.domain.errors import WriteRefusedError
from tidemill.domain.states import State, Write

SUCCESS = SETTLEMENTS[State.SUCCEEDED]


@pytest.fixture
def store() -> Store:
    return Store()


@pytest.fixture
def writes() -> Writes:
    return Writes()


@pytest.fixture
def commit(store: Store, writes: Writes, monkeypatch: pytest.MonkeyPatch) -> GroupedCommit:
    monkeypatch.setattr(grouped_commit, "LONGEST_WAIT_SECONDS", PATIENCE_SECONDS)
    return GroupedCommit(store, writes, TYPES, nothing_set)


@pytest.fixture(autouse=True)
def _waits_for_none(commit: GroupedCommit) -> Iterator[None]:
    began = time.monotonic()
    yield
    assert time.monotonic() - began < PATIENCE_SECONDS, "one has waited for another that does not come"


def test_more_jobs_than_a_call_may_name_are_written_by_two(commit: GroupedCommit, writes: Writes) -> None:
    """DynamoDB takes 25 statements."""
    references = _references(27)
    commit.expect(references)

    _settle_all(commit, _claim_all(commit, references), SUCCESS)

    assert [sorted(map(len, calls)) for calls in (writes.claims, writes.successes)] == [[2, 25], [2, 25]]


def test_a_refused_settle_is_raised(commit: GroupedCommit, store: Store, writes: Writes) -> None:
    references = _references(2)
    commit.expect(references)
    jobs = _claim_all(commit, references)
    refusal = WriteRefusedError(Write.SETTLE, a_job())
    writes.answer = lambda job_id, job: refusal if job_id == jobs[0].id else job

    def settle(number: int) -> object:
        try:
            return commit.settle(jobs[number], SUCCESS, now=NOW)
        except WriteRefusedError as error:
            return error

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(settle, range(2))) == [refusal, ()]
    assert store.settled == []


def test_a_success_that_a_call_leaves_open_is_settled_alone(
    commit: GroupedCommit, store: Store, writes: Writes
) -> None:
    references = _references(2)
    commit.expect(references)
    jobs = _claim_all(commit, references)
    writes.answer = lambda job_id, job: None if job_id == jobs[0].id else job

    assert _settle_all(commit, jobs, SUCCESS) == [(jobs[0],), ()]
    assert store.settled == [jobs[0].id]


def test_the_only_success_of_a_batch_is_settled_alone(commit: GroupedCommit, store: Store, writes: Writes) -> None:
    """One call is less than a settle and a read."""
    references = _references(2)
    commit.expect(references)
    failed, succeeded = _claim_all(commit, references)

    commit.settle(failed, SETTLEMENTS[State.RETRYING], now=NOW)
    commit.settle(succeeded, SUCCESS, now=NOW)

    assert store.settled == [failed.id, succeeded.id]
    assert writes.successes == []


def test_a_job_that_was_claimed_alone_is_settled_alone(commit: GroupedCommit, store: Store, writes: Writes) -> None:
    references = _references(3)
    commit.expect(references)
    left = references[0].job_id
    writes.answer = lambda job_id, job: None if job_id == left else job
    alone, *together = _claim_all(commit, references)

    commit.settle(alone, SUCCESS, now=NOW)
    _settle_all(commit, together, SUCCESS)

    assert store.settled == [left]
    assert writes.successes == [sorted(job.id for job in together)]


def test_a_job_settles_with_the_others_once(commit: GroupedCommit, store: Store) -> None:
    references = _references(2)
    commit.expect(references)
    jobs = _claim_all(commit, references)
    _settle_all(commit, jobs, SUCCESS)

    commit.settle(jobs[0], SUCCESS, now=NOW)

    assert store.settled == [jobs[0].id]


def test_a_claim_that_is_refused_keeps_no_settle_waiting(commit: GroupedCommit, writes: Writes) -> None:
    references = _references(3)
    refusal = WriteRefusedError(Write.CLAIM, a_job())
    writes.answer = lambda job_id, job: refusal if job_id == references[0].job_id else job
    commit.expect(references)
    _, *jobs = _claim_all(commit, references)

    assert _settle_all(commit, jobs, SUCCESS) == [(), ()]
    assert writes.successes == [_ids(references[1:])]
