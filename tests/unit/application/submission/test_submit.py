"""The submit use case: ids, times, replays, and the checks before the write."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from tests.support.builders import (
    LEASE,
    MILLISECOND,
    NOW,
    RETENTION,
    SECOND,
    SETTLEMENTS,
    TENANT,
    a_job,
    a_job_type,
    claimed,
    fresh_token,
    stored,
    types_of,
    with_changes,
)
from tests.support.job_tables import Table
from tests.support.single_job import Clock, Inline
from tidemill.application.features import submit_features
from tidemill.application.job_types import JobType
from tidemill.application.ports import JobStore
from tidemill.application.submission.job_ids import follow_up_id, keyed_job_id
from tidemill.application.submission.new_jobs import Accepted
from tidemill.application.submission.validation import DEEPEST_NESTING, LONGEST_NAME_BYTES
from tidemill.domain.errors import (
    Fault,
    InvalidPayloadError,
    KeyReusedError,
    PayloadTooLargeError,
    UnknownJobTypeError,
    WriteRefusedError,
)
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.submission.submission import Submission, Unique
from tidemill.domain.time_constants import LONGEST_SPAN
from tidemill.names import LARGEST_BODY_BYTES, Lane
from tidemill.powertools.idempotency import insert_once

Post = Callable[..., Accepted]
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)

TYPES = types_of(
    a_job_type(),
    replace(a_job_type(name="test.blocking"), blocks=True, retention=DAY),
    replace(a_job_type(name="test.daily"), unique=DAY),
)


@pytest.fixture
def post(store: JobStore, clock: Clock) -> Post:
    ids = iter(["first", "second", "third"])
    submit = submit_features.submit(
        store=store, payloads=Inline(), job_types=TYPES, clock=clock, new_id=lambda: next(ids), insert_once=insert_once
    )

    def post(payload: Any = None, *, tenant: str = TENANT, job_type: str = "test.job", **asked: Any) -> Accepted:
        submission = Submission(type=job_type, payload={} if payload is None else payload, **asked)
        return submit(submission, tenant=tenant, trace=fresh_token())

    return post


def test_a_submission_becomes_a_queued_job(post: Post, store: JobStore) -> None:
    accepted = post({"n": 1, "ü": None})

    job = accepted.job
    assert not accepted.replayed
    assert job == stored(store, job)
    assert (job.tenant, job.id, job.type, job.lane) == (TENANT, "first", "test.job", Lane.DEFAULT)
    assert (job.state, job.generation, job.attempt, job.due, job.created_at) == (State.QUEUED, 1, 0, NOW, NOW)
    assert job.payload.text == '{"n":1,"\\u00fc":null}'


def test_without_a_key_each_submission_makes_a_job(post: Post) -> None:
    assert [post().job.id, post().job.id] == ["first", "second"]


def test_a_key_gives_one_job_id_for_each_tenant() -> None:
    ids = {
        keyed_job_id(tenant, key)
        for tenant, key in [("a", "key"), ("b", "key"), ("a", "other"), ('a","', "key"), ("a", '","key')]
    }

    assert len(ids) == 5
    assert keyed_job_id("a", "key") in ids
    assert all(len(job_id) == 36 for job_id in ids)


def test_the_same_key_and_body_return_the_job_in_its_present_state(post: Post, store: JobStore, clock: Clock) -> None:
    first = post({"n": 1}, key="key").job
    running = claimed(store, first)
    clock.now += LEASE

    assert post({"n": 1}, key="key") == Accepted(job=running, replayed=True)


def test_the_order_of_members_does_not_change_the_body(post: Post, clock: Clock) -> None:
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
    table.put(with_changes(first, state=State.SUCCEEDED, due=None, expires_at=NOW.replace(microsecond=0) + RETENTION))
    clock.now += RETENTION + timedelta(seconds=1)

    again = post({"n": 2}, key="key")

    assert not again.replayed
    assert stored(store, first) == again.job


def test_an_unknown_type_is_refused_with_the_known_types(post: Post) -> None:
    with pytest.raises(UnknownJobTypeError, match=r"unknown job type 'test\.other'; known types: test\.") as refused:
        post(job_type="test.other")

    assert (refused.value.name, refused.value.known) == ("test.other", ("test.job", "test.blocking", "test.daily"))


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


def test_a_payload_that_is_nested_too_deep_is_refused(post: Post) -> None:
    assert not post({"a": _nested(DEEPEST_NESTING - 1)}).replayed

    with pytest.raises(InvalidPayloadError) as refused:
        post({"a": _nested(DEEPEST_NESTING)})

    assert refused.value.faults == (Fault("/payload", f"nested deeper than {DEEPEST_NESTING} levels"),)


def test_a_payload_that_is_too_large_is_refused(post: Post) -> None:
    fitting = "x" * (LARGEST_BODY_BYTES - len('{"a":""}'))
    assert len(post({"a": fitting}).job.payload.text or "") == LARGEST_BODY_BYTES

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


def test_a_job_holds_the_options_of_its_submission(post: Post, store: JobStore) -> None:
    asked = {"lane": Lane.BULK, "run_at": NOW + HOUR, "deadline": NOW + 2 * HOUR, "group": "g", "tags": ["b", "a"]}

    job = post(job_type="test.blocking", **asked).job

    assert job == stored(store, job)
    assert (job.lane, job.run_at, job.due, job.lifetime.deadline) == (Lane.BULK, NOW + HOUR, NOW + HOUR, NOW + 2 * HOUR)
    assert (job.state, job.group.key, job.group.blocks, job.lifetime.retention) == (State.SCHEDULED, "g", True, DAY)
    assert job.tags == ("a", "b")
    assert not post(job_type="test.blocking").job.group.blocks


@pytest.mark.parametrize(
    ("delay", "state"),
    [
        (timedelta(0), State.QUEUED),
        (15 * timedelta(minutes=1), State.QUEUED),
        (15 * timedelta(minutes=1) + MILLISECOND, State.SCHEDULED),
        (LONGEST_SPAN, State.SCHEDULED),
    ],
    ids=str,
)
def test_a_delay_longer_than_15_minutes_makes_a_scheduled_job(
    post: Post, store: JobStore, delay: timedelta, state: State
) -> None:
    job = post(delay=delay).job

    assert (job.state, job.due) == (state, NOW + delay)
    assert job == stored(store, job)


def test_a_time_between_two_milliseconds_is_rounded(post: Post, store: JobStore) -> None:
    microsecond = timedelta(microseconds=1)

    job = post(run_at=NOW + HOUR + microsecond, deadline=NOW + 2 * HOUR + microsecond).job

    assert job == stored(store, job)
    assert (job.run_at, job.lifetime.deadline) == (NOW + HOUR + MILLISECOND, NOW + 2 * HOUR)


@pytest.mark.parametrize(
    ("declared", "asked", "useful_until"),
    [
        (None, {}, None),
        (HOUR, {}, NOW + HOUR),
        (None, {"max_age": HOUR}, NOW + HOUR),
        (HOUR, {"max_age": 2 * HOUR}, NOW + 2 * HOUR),
        # It does not age before it may begin.
        (HOUR, {"run_at": NOW + 9 * HOUR}, NOW + 10 * HOUR),
        (HOUR, {"delay": HOUR}, NOW + 2 * HOUR),
        (HOUR + timedelta(microseconds=1), {}, NOW + HOUR),
    ],
)
def test_the_age_counts_from_the_time_at_which_the_job_may_begin(
    store: JobStore, clock: Clock, declared: timedelta | None, asked: dict[str, Any], useful_until: datetime | None
) -> None:
    submit = submit_features.submit(
        store=store,
        payloads=Inline(),
        job_types=types_of(replace(a_job_type(), max_age=declared)),
        clock=clock,
        new_id=fresh_token,
        insert_once=insert_once,
    )

    job = submit(Submission(type="test.job", payload={"n": 1}, **asked), tenant=TENANT, trace="trace").job

    assert job.lifetime.useful_until == useful_until
    assert job == stored(store, job)


def test_a_time_in_another_zone_is_the_same_moment(post: Post, store: JobStore) -> None:
    there = timezone(timedelta(hours=14))

    job = post(run_at=(NOW + HOUR).astimezone(there), key="key").job

    assert (job.run_at, job.run_at and job.run_at.tzinfo) == (NOW + HOUR, UTC)
    assert post(run_at=NOW + HOUR, key="key").replayed


def test_a_run_at_slightly_in_the_past_queues_the_job_at_once(post: Post) -> None:
    job = post(run_at=NOW - 30 * SECOND).job

    assert (job.state, job.due) == (State.QUEUED, NOW)


@pytest.mark.parametrize("group", ["x", "x" * LONGEST_NAME_BYTES, '"#\\', "\x00" * LONGEST_NAME_BYTES])
def test_a_group_name_may_hold_any_characters(post: Post, store: JobStore, group: str) -> None:
    job = post(group=group, tenant='"' * 512).job

    assert stored(store, job).group.key == group


def test_the_decoded_json_of_a_payload_is_checked(store: JobStore, clock: Clock) -> None:
    seen: list[Any] = []
    job_type: JobType = a_job_type(parse=seen.append)
    submit = submit_features.submit(
        store=store,
        payloads=Inline(),
        job_types=types_of(job_type),
        clock=clock,
        new_id=fresh_token,
        insert_once=insert_once,
    )

    submit(Submission(type="test.job", payload={"pair": (1, 2)}), tenant=TENANT, trace="request")

    assert seen == [{"pair": [1, 2]}]


def test_a_replay_after_its_times_have_passed_returns_the_job(post: Post, store: JobStore, clock: Clock) -> None:
    asked = {"run_at": NOW + HOUR, "deadline": NOW + 2 * HOUR, "key": "key"}
    job = post({"n": 1}, **asked).job
    clock.now += DAY

    assert post({"n": 1}, **asked) == Accepted(job=job, replayed=True)


def test_a_late_replay_with_another_body_is_refused(post: Post, clock: Clock) -> None:
    post({"n": 1}, run_at=NOW + HOUR, key="key")
    clock.now += DAY

    with pytest.raises(KeyReusedError):
        post({"n": 2}, run_at=NOW + HOUR, key="key")


def test_a_late_replay_of_an_expired_job_is_refused(post: Post, table: Table, clock: Clock) -> None:
    job = post(run_at=NOW + HOUR, key="key").job
    table.put(with_changes(job, state=State.SUCCEEDED, due=None, expires_at=NOW + RETENTION))
    clock.now += RETENTION + SECOND

    with pytest.raises(InvalidPayloadError):
        post(run_at=NOW + HOUR, key="key")


def test_a_payload_makes_one_unique_job_in_each_period(post: Post, clock: Clock) -> None:
    def unique(payload: Any, **asked: Any) -> Accepted:
        return post(payload, unique=Unique(period=DAY), **asked)

    first = unique({"a": 1, "b": 2})

    assert unique({"b": 2, "a": 1}, group="another") == Accepted(job=first.job, replayed=True)
    assert not unique({"a": 2}).replayed
    assert not unique({"a": 1, "b": 2}, tenant="another").replayed
    clock.now += DAY
    assert not unique({"a": 1, "b": 2}).replayed


def test_a_unique_key_makes_one_job_in_each_period(post: Post) -> None:
    first = post({"n": 1}, unique=Unique(period=DAY, key="k"))

    assert post({"n": 2}, unique=Unique(period=DAY, key="k")) == Accepted(job=first.job, replayed=True)
    assert not post({"n": 1}, unique=Unique(period=DAY, key="other")).replayed
    assert not post({"n": 1}, unique=Unique(period=HOUR, key="k")).replayed


def test_a_unique_type_needs_no_unique_option(post: Post, clock: Clock) -> None:
    first = post({"n": 1}, job_type="test.daily")
    clock.now = NOW.replace(hour=23)

    assert post({"n": 1}, job_type="test.daily") == Accepted(job=first.job, replayed=True)
    clock.now += 2 * HOUR
    assert not post({"n": 1}, job_type="test.daily").replayed


def test_the_id_of_a_follow_up_comes_from_its_key_or_unique_or_else_its_index(store: JobStore, clock: Clock) -> None:
    submit = submit_features.submit(
        store=store, payloads=Inline(), job_types=TYPES, clock=clock, new_id=fresh_token, insert_once=insert_once
    )
    parent = a_job(hops=2)

    def follow_up(**asked: Any) -> Job:
        return submit.prepare_follow_up(Submission(**{"type": "test.job"} | asked), parent, index=0)

    plain = follow_up()
    assert (plain.parent, plain.hops, plain.trace, plain.id) == (parent.id, 3, parent.trace, follow_up_id(parent, 0))
    assert follow_up(key="k").id == keyed_job_id(TENANT, "k")
    daily = submit.prepare(Submission(type="test.daily"), tenant=TENANT, trace="request")
    assert (follow_up(type="test.daily").id, follow_up(type="test.daily").body_hash) == (daily.id, daily.body_hash)


def test_a_unique_type_refuses_an_idempotency_key(post: Post, store: JobStore) -> None:
    with pytest.raises(InvalidPayloadError) as refused:
        post({"n": 1}, job_type="test.daily", key="a")

    assert [fault.path for fault in refused.value.faults] == ["/idempotency_key"]


def test_a_unique_job_is_kept_until_its_period_ends(post: Post, store: JobStore) -> None:
    job = post({"n": 1}, job_type="test.daily").job
    running = claimed(store, job)
    store.settle(running, SETTLEMENTS[State.SUCCEEDED], now=NOW)

    assert job.lifetime.unique_until is not None
    assert NOW < job.lifetime.unique_until <= NOW + timedelta(days=1)
    kept_until = stored(store, job).lifetime.expires_at
    assert kept_until is not None
    assert kept_until >= job.lifetime.unique_until
