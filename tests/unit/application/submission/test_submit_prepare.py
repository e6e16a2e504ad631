"""The document that a checked submission becomes, member by member, and the submissions that only the engine makes."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from tests.support.builders import MILLISECOND, NOW, SECOND, TENANT, a_job, a_job_type, types_of, with_changes
from tests.support.in_memory_jobs import InMemoryJobs
from tidemill.application.features import submit_features
from tidemill.application.submission.checked_submission import body_hash_of, hash_of
from tidemill.application.submission.job_ids import (
    callback_id,
    follow_up_id,
    keyed_job_id,
    submitted_job_id,
    unique_job_id,
)
from tidemill.application.submission.submit import Submit
from tidemill.domain.batches.batches import Callback, Opening
from tidemill.domain.debounce.debounce import quiet_after
from tidemill.domain.errors import InvalidPayloadError, UnknownJobTypeError
from tidemill.domain.events.events import Delivery, Event, Publication
from tidemill.domain.flows.flows import FlowStart
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.submission.submission import Submission, Unique
from tidemill.domain.waiting.pauses import CATCH_UP_TAG
from tidemill.names import (
    BATCH_TYPE,
    EVENT_TYPE,
    FLOW_TYPE,
    MIGRATION_TENANT,
    MIGRATION_TYPE,
    REPLAY_TENANT,
    REPLAY_TYPE,
    SCHEDULE_TENANT,
    Lane,
)

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
EAST = timezone(timedelta(hours=2))
TYPES = types_of(
    a_job_type(),
    replace(a_job_type(name="test.urgent"), lane=Lane.CRITICAL),
    replace(a_job_type(name="test.blocking"), blocks=True, retention=DAY),
    replace(a_job_type(name="test.aged"), max_age=HOUR),
    replace(a_job_type(name="test.daily"), unique=DAY),
    *(a_job_type(name=name) for name in (EVENT_TYPE, BATCH_TYPE, FLOW_TYPE, MIGRATION_TYPE, REPLAY_TYPE)),
)
PARENT = a_job(id="parent", trace="of the parent", hops=3)


def submit() -> Submit:
    jobs = InMemoryJobs()
    return submit_features.submit(store=jobs, payloads=jobs, job_types=TYPES, clock=lambda: NOW, new_id=lambda: "new")


def prepared(submission: Submission, *, tenant: str = TENANT, job_id: str | None = None) -> Job:
    return submit().prepare(submission, tenant=tenant, trace="t", job_id=job_id)


def the_job(**changes: Any) -> Job:
    """Return the job of a submission that gives nothing but its type."""
    least = a_job(id="new", trace="t", body_hash=body_hash_of(Submission(type="test.job")))
    return with_changes(least, **changes)


def test_a_submission_of_nothing_but_its_type_is_due_at_once() -> None:
    assert prepared(Submission(type="test.job")) == the_job()


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"payload": {"n": (1,)}}, {"payload": '{"n":[1]}'}),
        ({"lane": Lane.BULK}, {"lane": Lane.BULK}),
        ({"type": "test.urgent"}, {"lane": Lane.CRITICAL}),
        ({"type": "test.urgent", "lane": Lane.DEFAULT}, {"lane": Lane.DEFAULT}),
        ({"key": "k"}, {"id": submitted_job_id(TENANT, "k")}),
        ({"group": "a"}, {"group": "a"}),
        ({"type": "test.blocking", "group": "a"}, {"group": "a", "blocks": True, "retention": DAY}),
        ({"type": "test.blocking"}, {"retention": DAY}),
        ({"tags": ["b", "a"]}, {"tags": ("a", "b")}),
        ({"batch": "b"}, {"batch": "b"}),
        ({"supersedes": "k"}, {"supersedes": "k"}),
        ({"delay": timedelta(0)}, {}),
        ({"delay": 5 * SECOND}, {"run_at": NOW + 5 * SECOND, "due": NOW + 5 * SECOND}),
        ({"delay": HOUR}, {"run_at": NOW + HOUR, "due": NOW + HOUR, "state": State.SCHEDULED}),
        ({"run_at": NOW - SECOND}, {"run_at": NOW - SECOND}),
        ({"run_at": (NOW + MINUTE).astimezone(EAST)}, {"run_at": NOW + MINUTE, "due": NOW + MINUTE}),
        (
            {"run_at": NOW + timedelta(microseconds=1)},
            {"run_at": NOW + MILLISECOND, "due": NOW + MILLISECOND},
        ),
        ({"deadline": (NOW + MINUTE).astimezone(EAST)}, {"deadline": NOW + MINUTE}),
        ({"deadline": NOW + MINUTE - timedelta(microseconds=1)}, {"deadline": NOW + MINUTE - MILLISECOND}),
        ({"max_age": MINUTE}, {"useful_until": NOW + MINUTE}),
        ({"max_age": MINUTE - timedelta(microseconds=1)}, {"useful_until": NOW + MINUTE - MILLISECOND}),
        ({"type": "test.aged"}, {"useful_until": NOW + HOUR}),
        ({"type": "test.aged", "max_age": MINUTE}, {"useful_until": NOW + MINUTE}),
        (
            {"type": "test.aged", "delay": MINUTE},
            {"run_at": NOW + MINUTE, "due": NOW + MINUTE, "useful_until": NOW + MINUTE + HOUR},
        ),
        # A correction follows the undo, however long that takes.
        ({"type": "test.aged", "supersedes": "k"}, {"supersedes": "k"}),
        # Only the schedule makes up for a pause.
        ({"type": "test.aged", "tags": [CATCH_UP_TAG]}, {"useful_until": NOW + HOUR, "tags": (CATCH_UP_TAG,)}),
    ],
)
def test_each_member_of_a_submission_has_its_place_in_the_document(
    asked: dict[str, Any], expected: dict[str, Any]
) -> None:
    submission = Submission(**{"type": "test.job"} | asked)
    named = {"type": submission.type, "body_hash": body_hash_of(submission)}

    assert prepared(submission) == the_job(**named | expected)


@pytest.mark.parametrize(("tags", "expires"), [([CATCH_UP_TAG], None), (["a"], NOW + HOUR)])
def test_only_a_job_that_makes_up_for_a_pause_does_not_expire_during_it(
    tags: list[str], expires: datetime | None
) -> None:
    assert prepared(Submission(type="test.aged", tags=tags), tenant=SCHEDULE_TENANT).lifetime.useful_until == expires


@pytest.mark.parametrize(
    ("type_name", "asked", "unique"),
    [
        ("test.job", Unique(period=HOUR), Unique(period=HOUR)),
        ("test.job", Unique(period=HOUR, key="k"), Unique(period=HOUR, key="k")),
        ("test.daily", None, Unique(period=DAY)),
        ("test.daily", Unique(period=HOUR), Unique(period=HOUR)),
    ],
)
def test_a_unique_job_is_the_answer_to_every_submission_in_its_period(
    type_name: str, asked: Unique | None, unique: Unique
) -> None:
    job = prepared(Submission(type=type_name, payload={"n": 1}, unique=asked))
    other = prepared(Submission(type=type_name, payload={"n": 1}, unique=asked, group="a", lane=Lane.BULK))

    assert job.id == unique_job_id(TENANT, type_name, unique, hash_of({"n": 1}), now=NOW)
    assert job.body_hash == other.body_hash == hash_of({"unique": job.id})
    assert job.lifetime.unique_until is not None
    assert NOW < job.lifetime.unique_until <= NOW + unique.period
    assert prepared(Submission(type="test.job")).lifetime.unique_until is None


def test_a_debounced_job_is_due_when_its_burst_is_quiet() -> None:
    job = prepared(Submission(type="test.job", debounce=5 * SECOND, debounce_key="ada", debounce_max=MINUTE))

    assert job.burst is not None
    quiet = quiet_after(NOW, 5 * SECOND)
    assert (job.run_at, job.due, job.burst.sent_for) == (quiet, quiet, quiet)
    assert (job.burst.key, job.burst.until, job.burst.replaces) == ("ada", quiet_after(NOW, MINUTE), False)
    later = prepared(Submission(type="test.job", debounce=HOUR, replace="payload", debounce_key="a"))
    assert (later.state, later.burst and later.burst.replaces) == (State.SCHEDULED, True)


@pytest.mark.parametrize(
    ("type_name", "says"),
    [
        (EVENT_TYPE, "publish the event instead"),
        (BATCH_TYPE, "open a batch instead"),
        (FLOW_TYPE, "start a flow instead"),
        (MIGRATION_TYPE, "operators run `tidemill migrate` instead"),
        (REPLAY_TYPE, "operators run `tidemill replay` instead"),
    ],
)
def test_the_types_of_the_engine_are_not_submitted_as_jobs(type_name: str, says: str) -> None:
    with pytest.raises(InvalidPayloadError) as refused:
        prepared(Submission(type=type_name))
    assert [(fault.path, fault.message) for fault in refused.value.faults] == [("/type", says)]


@pytest.mark.parametrize(
    ("type_name", "own", "other"),
    [(MIGRATION_TYPE, MIGRATION_TENANT, REPLAY_TENANT), (REPLAY_TYPE, REPLAY_TENANT, MIGRATION_TENANT)],
)
def test_a_command_of_an_operator_submits_its_type_as_its_own_tenant(type_name: str, own: str, other: str) -> None:
    assert prepared(Submission(type=type_name), tenant=own).type == type_name
    with pytest.raises(InvalidPayloadError):
        prepared(Submission(type=type_name), tenant=other)


@pytest.mark.parametrize(
    "submission",
    [
        Publication(type=EVENT_TYPE, key="event/k", event=Event(type="order.placed")),
        Opening(type=BATCH_TYPE, key="batch/k", asked={}),
        FlowStart(type=FLOW_TYPE, key="flow/k", payload={"nodes": []}),
    ],
)
def test_an_event_a_batch_and_a_flow_have_the_ids_of_their_keys(submission: Submission) -> None:
    job = prepared(submission)
    assert (job.type, job.id) == (submission.type, keyed_job_id(TENANT, submission.key or ""))


def test_a_job_of_another_type_is_refused() -> None:
    with pytest.raises(UnknownJobTypeError):
        prepared(Submission(type="test.unknown"))


@pytest.mark.parametrize(("given", "lane"), [(None, Lane.DEFAULT), (Lane.CRITICAL, Lane.CRITICAL), ("bulk", Lane.BULK)])
@pytest.mark.parametrize("blocks", [True, False])
def test_a_delivery_has_the_facts_of_its_type_at_the_publication(blocks: bool, given: Any, lane: Lane) -> None:
    """This code may not know the type, and its model may refuse the data."""
    delivery = Delivery(
        type="test.unknown", payload={"n": 1}, lane=given, group="a", tags=["x"], blocks=blocks, retention=DAY
    )
    job = prepared(delivery, job_id="id")

    expected = the_job(
        id="id",
        type="test.unknown",
        payload='{"n":1}',
        body_hash=body_hash_of(delivery),
        lane=lane,
        group="a",
        tags=("x",),
        blocks=blocks,
        retention=DAY,
    )
    assert job == expected


@pytest.mark.parametrize(
    ("submission", "hops", "job_id"),
    [
        (Submission(type="test.job"), 4, follow_up_id(PARENT, 2)),
        (Delivery(type="test.job"), 4, follow_up_id(PARENT, 2)),
        # A look of a batch makes no link of a chain.
        (Callback(type="test.job", name="on_success"), 0, callback_id(PARENT, "on_success")),
    ],
)
def test_a_follow_up_counts_the_links_of_its_chain(submission: Submission, hops: int, job_id: str) -> None:
    job = submit().prepare_follow_up(submission, PARENT, index=2)

    expected = {"id": job_id, "trace": "of the parent", "parent": "parent", "hops": hops}
    assert job == the_job(**expected)


@pytest.mark.parametrize(
    ("asked", "path", "says"),
    [
        ({"supersedes": "k"}, "/supersedes", "a follow-up job supersedes none"),
        ({"batch": "b"}, "/batch", "a follow-up job joins no batch"),
        ({"debounce": SECOND}, "/debounce_seconds", "a follow-up job is not debounced"),
    ],
)
def test_a_follow_up_may_not_be_written_in_ways_of_its_own(asked: dict[str, Any], path: str, says: str) -> None:
    with pytest.raises(InvalidPayloadError) as refused:
        submit().prepare_follow_up(Submission(type="test.job", **asked), PARENT, index=0)
    assert [(fault.path, fault.message) for fault in refused.value.faults] == [(path, says)]


def test_the_times_of_a_document_are_in_utc() -> None:
    job = prepared(Submission(type="test.job", run_at=(NOW + MINUTE).astimezone(EAST), deadline=NOW + HOUR))
    assert {each.tzinfo for each in (job.run_at, job.lifetime.deadline, job.due) if each} == {UTC}
