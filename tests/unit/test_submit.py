"""The submit use case: ids, replays, and what is refused before anything is written."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from shared.application.ports import JobStore
from shared.application.submit import DEEPEST_NESTING, Accepted, Submission, Submit, keyed_job_id
from shared.domain.errors import (
    Fault,
    InvalidPayloadError,
    KeyReusedError,
    PayloadTooLargeError,
    UnknownJobTypeError,
    WriteRefusedError,
)
from shared.domain.states import State
from shared.names import LARGEST_BODY_BYTES, Lane
from tests.support.builders import LEASE, NOW, RETENTION, TENANT, a_job_type, claimed, stored, types_of
from tests.support.tables import Table
from tests.support.world import Clock

Post = Callable[..., Accepted]


@pytest.fixture
def post(store: JobStore, clock: Clock) -> Post:
    ids = iter(["first", "second", "third"])
    submit = Submit(store=store, job_types=types_of(a_job_type()), clock=clock, new_id=lambda: next(ids))

    def post(
        payload: Any = None, *, key: str | None = None, tenant: str = TENANT, job_type: str = "test.job"
    ) -> Accepted:
        return submit(Submission(type=job_type, payload=payload or {}), tenant=tenant, key=key, trace="request")

    return post


def test_a_submission_becomes_a_queued_job(post: Post, store: JobStore) -> None:
    accepted = post({"n": 1, "ü": None})

    job = accepted.job
    assert not accepted.replayed
    assert job == stored(store, job)
    assert (job.tenant, job.id, job.type, job.lane, job.trace) == (TENANT, "first", "test.job", Lane.DEFAULT, "request")
    assert (job.state, job.generation, job.attempt, job.due, job.created_at) == (State.QUEUED, 1, 0, NOW, NOW)
    assert job.payload == '{"n":1,"\\u00fc":null}'


def test_without_a_key_each_submission_is_a_job_of_its_own(post: Post) -> None:
    assert [post().job.id, post().job.id] == ["first", "second"]


def test_a_key_stands_for_one_job_of_its_tenant() -> None:
    ids = {
        keyed_job_id(tenant, key)
        for tenant, key in [("a", "key"), ("b", "key"), ("a", "other"), ('a","', "key"), ("a", '","key')]
    }

    assert len(ids) == 5
    assert keyed_job_id("a", "key") in ids
    assert all(len(job_id) == 36 for job_id in ids)


def test_the_same_key_and_body_give_the_same_job_as_it_stands(post: Post, store: JobStore, clock: Clock) -> None:
    first = post({"n": 1}, key="key").job
    running = claimed(store, first)
    clock.now += LEASE

    assert post({"n": 1}, key="key") == Accepted(job=running, replayed=True)


def test_the_order_of_members_makes_no_other_body(post: Post, clock: Clock) -> None:
    post({"a": 1, "b": {"c": 2, "d": 3}}, key="key")
    clock.now += LEASE

    assert post({"b": {"d": 3, "c": 2}, "a": 1}, key="key").replayed


def test_the_same_key_with_another_body_is_refused_and_changes_nothing(post: Post, store: JobStore) -> None:
    first = post({"n": 1}, key="key").job

    with pytest.raises(KeyReusedError):
        post({"n": 2}, key="key")

    assert stored(store, first) == first


def test_a_key_is_free_again_when_its_job_has_expired(post: Post, store: JobStore, table: Table, clock: Clock) -> None:
    first = post({"n": 1}, key="key").job
    table.put(replace(first, state=State.SUCCEEDED, due=None, expires_at=NOW.replace(microsecond=0) + RETENTION))
    clock.now += RETENTION + timedelta(seconds=1)

    again = post({"n": 2}, key="key")

    assert not again.replayed
    assert stored(store, first) == again.job


def test_an_unknown_type_is_refused_with_those_that_are_known(post: Post) -> None:
    with pytest.raises(UnknownJobTypeError, match=r"unknown job type 'test\.other'; known types: test\.job") as refused:
        post(job_type="test.other")

    assert (refused.value.name, refused.value.known) == ("test.other", ("test.job",))


@pytest.mark.parametrize("number", [float("inf"), float("-inf"), float("nan")])
def test_a_number_that_json_cannot_write_is_refused(post: Post, store: JobStore, number: float) -> None:
    with pytest.raises(InvalidPayloadError, match="finite"):
        post({"n": [number]})

    assert store.get(TENANT, "first") is None


def _nested(levels: int) -> Any:
    value: Any = 1
    for level in range(levels):
        value = [value] if level % 2 else {"a": value}
    return value


def test_a_payload_is_nested_no_deeper_than_every_reader_can_walk(post: Post) -> None:
    assert post({"a": _nested(DEEPEST_NESTING - 1)}).job.payload.endswith("}")

    with pytest.raises(InvalidPayloadError) as refused:
        post({"a": _nested(DEEPEST_NESTING)})

    assert refused.value.faults == (Fault("/payload", f"nested deeper than {DEEPEST_NESTING} levels"),)


def test_a_payload_too_large_to_carry_is_refused(post: Post) -> None:
    fitting = "x" * (LARGEST_BODY_BYTES - len('{"a":""}'))
    assert len(post({"a": fitting}).job.payload) == LARGEST_BODY_BYTES

    with pytest.raises(PayloadTooLargeError) as refused:
        post({"a": fitting + "x"})

    assert (refused.value.size_bytes, refused.value.limit_bytes) == (LARGEST_BODY_BYTES + 1, LARGEST_BODY_BYTES)


def test_a_refusal_without_a_document_is_passed_on(
    post: Post, store: JobStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def vanished(_job: object) -> None:
        raise WriteRefusedError("insert_if_absent", None)

    monkeypatch.setattr(store, "insert_if_absent", vanished)

    with pytest.raises(WriteRefusedError):
        post()
