"""`begin_debounce` and `join_debounce`: each clause of their conditions, and what they write."""

import math
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.support.builders import (
    A_BURST,
    A_SIGNAL,
    A_WAIT,
    NOW,
    SECOND,
    a_job,
    claimed,
    fresh_token,
    stored,
    with_changes,
)
from tests.support.faulty_client import Fault, FaultyClient
from tests.support.job_tables import Table
from tidemill.domain.debounce.debounce import moved
from tidemill.domain.errors import WriteRefusedError
from tidemill.domain.history import Why
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.time_constants import MILLISECOND
from tidemill.dynamodb.debounce.debounce_writes import KEPT, debounce_item_key
from tidemill.dynamodb.job_store import DynamoJobStore

DUE = NOW + 30 * SECOND
LATER = NOW + 40 * SECOND


def a_first(**changes: Any) -> Job:
    return a_job(**{"due": DUE, "run_at": DUE, "burst": replace(A_BURST, sent_for=DUE)} | changes)


def begun(store: DynamoJobStore, **changes: Any) -> Job:
    return store.begin_debounce(a_first(**changes), after=None)


def join(store: DynamoJobStore, job: Job, changed: Job, *, replaces: bool = False, **given: Any) -> Job:
    fields: dict[str, Any] = {"by": fresh_token(), "now": NOW + SECOND} | given
    return store.join_debounce(job, changed, replaces=replaces, **fields)


def on(job: Job, **changes: Any) -> Job:
    return with_changes(moved(job, LATER, now=NOW + SECOND), **changes)


def test_the_first_submission_inserts_its_job_and_leads_to_it(store: DynamoJobStore, table: Table) -> None:
    assert store.debounced_job_id(a_first().tenant, "burst") is None

    job = begun(store)

    assert stored(store, job) == job
    assert store.debounced_job_id(job.tenant, "burst") == job.id
    item = table.client.get_item(TableName=table.name, Key=debounce_item_key(job.tenant, "burst"))["Item"]
    assert int(item["expires_at"]["N"]) == math.ceil((A_BURST.until + KEPT).timestamp())


def test_one_of_two_concurrent_first_submissions_is_refused(store: DynamoJobStore) -> None:
    job, second = begun(store), a_first()

    with pytest.raises(WriteRefusedError):
        store.begin_debounce(second, after=None)

    assert store.get(second.tenant, second.id) is None
    assert store.debounced_job_id(job.tenant, "burst") == job.id


def test_the_next_burst_follows_the_last_one(store: DynamoJobStore) -> None:
    last, job = begun(store), a_first()

    store.begin_debounce(job, after=last.id)

    assert store.debounced_job_id(job.tenant, "burst") == job.id
    with pytest.raises(WriteRefusedError):
        store.begin_debounce(a_first(), after=last.id)


def test_a_burst_does_not_follow_one_whose_name_has_been_forgotten_since(store: DynamoJobStore) -> None:
    """The submission reads again, and finds no burst."""
    job = a_first()

    with pytest.raises(WriteRefusedError):
        store.begin_debounce(job, after="a job of an item that has expired")

    assert store.get(job.tenant, job.id) is None


def test_a_repeated_begin_finds_its_own_success(store: DynamoJobStore) -> None:
    job = begun(store)

    assert store.begin_debounce(job, after=None) == job


def test_a_submission_moves_the_job_and_leaves_the_payload(store: DynamoJobStore, table: Table) -> None:
    job = begun(store)
    migrated = with_changes(job, payload='{"v":2}')
    table.put(migrated)

    written = join(store, job, on(job), by="second")

    assert written == stored(store, job)
    assert written.payload.text == '{"v":2}'
    assert written.burst == replace(
        A_BURST, sent_for=DUE, last="second", moves=1, first_moved_at=NOW + SECOND, joined_at=NOW + SECOND
    )
    assert (written.due, written.run_at, written.generation) == (LATER, LATER, 1)
    assert written.history == (), "a burst may move its job often, and the job stays as it is"


def test_a_submission_replaces_the_payload_and_leaves_the_time(store: DynamoJobStore) -> None:
    job = begun(store)

    written = join(store, job, with_changes(job, payload='{"v":2}'), replaces=True)
    written = join(store, written, with_changes(written, payload='{"v":3}'), replaces=True)

    assert (written.payload.text, written.due, written.generation) == ('{"v":3}', DUE, 1)
    assert written.burst
    assert (written.burst.replacements, written.burst.first_replaced_at) == (2, NOW + SECOND)
    assert written.burst.moves == 0


def test_a_submission_keeps_a_job_of_use_that_keeps_its_time(store: DynamoJobStore) -> None:
    job = begun(store, useful_until=DUE)

    written = join(store, job, with_changes(job, useful_until=LATER))

    assert written == stored(store, job)
    assert (written.lifetime.useful_until, written.due, written.payload.text) == (LATER, DUE, job.payload.text)


def test_a_submission_that_asks_for_no_longer_use_leaves_that_of_another(store: DynamoJobStore) -> None:
    """It has read the job before the other one."""
    job = begun(store, useful_until=DUE)
    join(store, job, with_changes(job, useful_until=LATER))

    written = join(store, job, with_changes(job, payload='{"v":2}'), replaces=True, now=NOW + 2 * SECOND)

    assert (written.lifetime.useful_until, written.payload.text) == (LATER, '{"v":2}')


@pytest.mark.parametrize("read_before", [True, False])
def test_a_submission_without_an_age_lets_the_job_be_of_use_for_good(store: DynamoJobStore, read_before: bool) -> None:
    """Also if it has read the job before another one asked for longer use."""
    job = begun(store, useful_until=DUE)
    longer = join(store, job, with_changes(job, useful_until=LATER))

    read = job if read_before else longer
    written = join(store, read, with_changes(read, useful_until=None), now=NOW + 2 * SECOND)

    assert written.lifetime.useful_until is None
    assert written == stored(store, job)


@pytest.mark.parametrize("asked", [None, LATER + SECOND])
def test_a_submission_that_asks_for_longer_use_looks_again_after_another_has(
    store: DynamoJobStore, asked: datetime | None
) -> None:
    """It has read the job before the other one, which asked for longer still, or for use without an end."""
    job = begun(store, useful_until=DUE)
    join(store, job, with_changes(job, useful_until=asked))

    with pytest.raises(WriteRefusedError):
        join(store, job, with_changes(job, useful_until=LATER), now=NOW + 2 * SECOND)

    assert stored(store, job).lifetime.useful_until == asked


@pytest.mark.parametrize("asked", [LATER, LATER - SECOND])
def test_submissions_that_ask_for_longer_use_at_once_do_not_refuse_each_other(
    store: DynamoJobStore, asked: datetime
) -> None:
    """A burst with an age may have many in a second, each of which has read the job before the others."""
    job = begun(store, useful_until=DUE)
    join(store, job, with_changes(job, useful_until=asked))

    join(store, job, with_changes(job, useful_until=LATER), now=NOW + 2 * SECOND)

    assert stored(store, job).lifetime.useful_until == LATER


@pytest.mark.parametrize("behind", [timedelta(0), 5 * SECOND])
@pytest.mark.parametrize("replaces", [True, False])
def test_a_late_send_of_an_earlier_submission_is_refused(
    store: DynamoJobStore, behind: timedelta, replaces: bool
) -> None:
    job = begun(store, useful_until=DUE)
    asked: dict[str, Any] = {"replaces": replaces, "by": "first", "now": NOW + SECOND}
    earlier = with_changes(job, payload='{"v":2}', useful_until=LATER)
    first = join(store, job, earlier, **asked)
    second = join(store, first, with_changes(first, payload='{"v":3}'), replaces=True, now=NOW + SECOND - behind)

    with pytest.raises(WriteRefusedError) as refused:
        join(store, job, earlier, **asked)

    assert refused.value.current == stored(store, job) == second
    assert second.payload.text == '{"v":3}'


def test_two_concurrent_replacements_of_an_inline_payload_both_count(store: DynamoJobStore) -> None:
    job = begun(store)

    join(store, job, with_changes(job, payload='{"v":2}'), replaces=True)
    written = join(store, job, with_changes(job, payload='{"v":3}'), replaces=True, now=NOW + SECOND + MILLISECOND)

    assert written.payload.text == '{"v":3}'
    assert written.burst
    assert written.burst.replacements == 2


def test_a_payload_moves_out_of_the_document_and_back(store: DynamoJobStore) -> None:
    job = begun(store)

    apart = join(store, job, with_changes(job, payload=None, payload_at="item/1"), replaces=True)
    assert (apart.payload.text, apart.payload.location) == (None, "item/1")

    back = join(store, apart, with_changes(apart, payload="{}", payload_at=None), replaces=True)
    assert (back.payload.text, back.payload.location) == ("{}", None)


def test_a_scheduled_job_moves_in_the_index_and_leaves_it_when_queued(store: DynamoJobStore, table: Table) -> None:
    far = NOW + timedelta(hours=1)
    job = begun(store, state=State.SCHEDULED, due=far, run_at=far, burst=replace(A_BURST, sent_for=far))

    later = join(store, job, moved(job, far + SECOND, now=NOW))
    assert list(store.scheduled(before=far)) == []
    assert list(store.scheduled(before=far + SECOND)) == [later]

    near = join(store, later, moved(later, LATER, now=NOW))
    assert (near.state, near.due) == (State.QUEUED, LATER)
    assert [(entry.state, entry.cause, entry.at) for entry in near.history] == [(State.QUEUED, Why.MOVED, NOW + SECOND)]
    assert list(store.scheduled(before=far + SECOND)) == []
    assert "attention" not in (table.item(job) or {})
    nearer = join(store, near, moved(near, LATER + SECOND, now=NOW + 2 * SECOND), now=NOW + 2 * SECOND)
    assert (nearer.state, nearer.due) == (State.QUEUED, LATER + SECOND)
    assert nearer.burst
    assert (nearer.burst.moves, nearer.burst.first_moved_at) == (3, NOW)
    assert "attention" not in (table.item(job) or {})


def test_a_parked_job_takes_a_payload_and_stays_in_its_line(store: DynamoJobStore) -> None:
    job = begun(store)
    parked = store.park(job, A_WAIT, now=NOW)

    written = join(store, parked, with_changes(parked, payload='{"v":2}'), replaces=True)

    assert (written.payload.text, written.due, written.generation) == ('{"v":2}', parked.due, parked.generation)
    assert store.parked(A_WAIT.line, most=1) == [written]


def test_a_job_that_a_worker_has_claimed_is_left_alone(store: DynamoJobStore) -> None:
    job = begun(store, due=NOW, burst=A_BURST)
    running = claimed(store, job)

    with pytest.raises(WriteRefusedError) as refused:
        join(store, job, with_changes(job, payload='{"v":2}'), replaces=True)

    assert refused.value.current == running == stored(store, job)


def test_a_job_that_was_cancelled_is_left_alone(store: DynamoJobStore) -> None:
    job = begun(store)
    cancelled = store.cancel(job, now=NOW)

    with pytest.raises(WriteRefusedError):
        join(store, job, on(job))

    assert stored(store, job) == cancelled


def test_a_job_that_was_held_back_since_it_was_read_is_left_alone(store: DynamoJobStore, table: Table) -> None:
    job = begun(store)
    table.put(replace(job, generation=job.generation + 1))

    with pytest.raises(WriteRefusedError):
        join(store, job, on(job))


@pytest.mark.parametrize("replaces", [True, False])
def test_a_job_that_got_a_signal_since_it_was_read_is_left_alone(store: DynamoJobStore, *, replaces: bool) -> None:
    job = begun(store)
    approved = store.signal(job, A_SIGNAL, wakes=False)

    with pytest.raises(WriteRefusedError) as refused:
        join(store, job, with_changes(on(job), payload='{"v":2}'), replaces=replaces)

    assert refused.value.current == approved == stored(store, job)


def test_a_job_that_another_submission_has_moved_is_not_moved_back(store: DynamoJobStore) -> None:
    job = begun(store)
    further = join(store, job, moved(job, LATER + SECOND, now=NOW))

    with pytest.raises(WriteRefusedError) as refused:
        join(store, job, on(job))

    assert refused.value.current == further


@pytest.mark.parametrize("location", [None, "item/1"])
def test_a_location_that_another_submission_wrote_is_not_lost(store: DynamoJobStore, location: str | None) -> None:
    job = begun(store, payload=None if location else "{}", payload_at=location)
    first = join(store, job, with_changes(job, payload=None, payload_at="item/2"), replaces=True)

    with pytest.raises(WriteRefusedError):
        join(store, job, with_changes(job, payload=None, payload_at="item/3"), replaces=True)

    assert stored(store, job) == first


def test_a_lost_answer_of_a_submission_counts_once(store: DynamoJobStore, client: FaultyClient) -> None:
    job = begun(store)
    client.faults = [Fault.SENT_TWICE]

    written = join(store, job, with_changes(job, payload='{"v":2}'), replaces=True)

    assert written.burst
    assert written.burst.replacements == 1


def test_a_pause_does_not_take_the_job_back_to_an_earlier_time(store: DynamoJobStore) -> None:
    job = begun(store)
    later = join(store, job, on(job))

    with pytest.raises(WriteRefusedError) as refused:
        store.park(job, A_WAIT, now=NOW)

    assert refused.value.current == later


def test_a_wake_that_read_the_job_before_it_was_moved_is_refused(store: DynamoJobStore) -> None:
    far = NOW + timedelta(hours=1)
    job = begun(store, state=State.SCHEDULED, due=far, run_at=far, burst=replace(A_BURST, sent_for=far))
    join(store, job, moved(job, far + SECOND, now=NOW))

    with pytest.raises(WriteRefusedError):
        store.wake(job, now=NOW)
