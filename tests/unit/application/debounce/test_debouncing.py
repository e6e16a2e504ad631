"""Debounced submissions: which job they become, with which payload and at which time, also when they meet."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.support.builders import LEASE, NOW, SECOND, TENANT, a_job_type, claimed, fresh_token, stored, types_of
from tests.support.faulty_client import Fault, FaultyClient
from tests.support.in_memory_owed_work import owing
from tests.support.interleave import meet
from tests.support.job_tables import Table
from tests.support.payload_bucket import PayloadBucket
from tests.support.single_job import Clock
from tidemill.application.debounce.debouncing import MOST_LOOKS, Debouncer
from tidemill.application.features import submit_features
from tidemill.application.ports import JobStore
from tidemill.application.submission.new_jobs import Accepted
from tidemill.application.submission.submit import Admit, Submit, admit_all
from tidemill.application.submission.submit_batch import submit_all
from tidemill.domain.attempt.outcomes import outcome_before_run
from tidemill.domain.attempt.retry import RetryPolicy
from tidemill.domain.debounce.debounce import quiet_after
from tidemill.domain.errors import StoreUnavailableError, WriteRefusedError
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State, Write
from tidemill.domain.submission.submission import Submission
from tidemill.dynamodb.job_store import DynamoJobStore
from tidemill.dynamodb.payloads import Bucket, DynamoPayloads
from tidemill.powertools.idempotency import insert_once

TYPES = types_of(a_job_type())
#: Too large for the document.
LARGE = {"text": "x" * 1000}
Post = Callable[..., Accepted]


def submit_with(store: JobStore, payloads: DynamoPayloads, clock: Clock, admit: Admit = admit_all) -> Submit:
    return submit_features.submit(
        store=store,
        payloads=owing(payloads),
        job_types=TYPES,
        clock=clock,
        new_id=fresh_token,
        insert_once=insert_once,
        admit=admit,
        debounce=Debouncer(store=store, payloads=owing(payloads), clock=clock).accept,
    )


def debounced(n: int = 0, **asked: Any) -> Submission:
    usual = {"payload": {"n": n}, "debounce": 30 * SECOND, "debounce_key": "ada", "replace": "payload"}
    fields: dict[str, Any] = usual | asked
    return Submission(type="test.job", **fields)


@pytest.fixture
def payloads(client: FaultyClient, table: Table) -> DynamoPayloads:
    bucket = PayloadBucket(table)
    return DynamoPayloads(
        client,  # type: ignore[arg-type]  # a proxy
        table=table.name,
        bucket=lambda: Bucket(bucket.client, bucket.name),
        new_token=fresh_token,
    )


@pytest.fixture
def submit(store: JobStore, payloads: DynamoPayloads, clock: Clock) -> Submit:
    return submit_with(store, payloads, clock)


@pytest.fixture
def post(submit: Submit) -> Post:
    return lambda n=0, **asked: submit(debounced(n, **asked), tenant=TENANT, trace=fresh_token())


@pytest.fixture
def post_elsewhere(table: Table, payloads: DynamoPayloads, clock: Clock, store: DynamoJobStore) -> Post:
    """Through another client."""
    other = submit_with(DynamoJobStore(table.client, table=table.name, retention=LEASE), payloads, clock)
    return lambda n=0, **asked: other(debounced(n, **asked), tenant=TENANT, trace=fresh_token())


def jobs_in(table: Table) -> int:
    return sum("state" in item for item in table.client.scan(TableName=table.name)["Items"])


def keys_in(table: Table) -> list[str]:
    return [item["pk"]["S"] for item in table.client.scan(TableName=table.name)["Items"]]


def payloads_in(table: Table) -> int:
    return sum(key.startswith("!payload#") for key in keys_in(table))


def payload(job: Job, payloads: DynamoPayloads) -> str:
    return payloads.load(job)


def test_submissions_of_one_key_become_one_job_with_the_last_payload(post: Post, clock: Clock, table: Table) -> None:
    first = post(1)
    clock.now += 10 * SECOND
    second = post(2)

    assert (first.replayed, second.replayed) == (False, True)
    assert second.job.id == first.job.id
    assert second.job.payload.text == '{"n":2}'
    assert second.job.due == quiet_after(clock.now, 30 * SECOND)
    assert jobs_in(table) == 1


def test_without_replace_the_first_payload_counts(post: Post, clock: Clock) -> None:
    post(1, replace=None)
    clock.now += 10 * SECOND

    job = post(2, replace=None).job

    assert (job.payload.text, job.due) == ('{"n":1}', quiet_after(clock.now, 30 * SECOND))


def test_without_a_key_the_payload_is_the_key(post: Post, table: Table) -> None:
    for n in (1, 2, 1):
        post(n, replace=None, debounce_key=None)

    assert jobs_in(table) == 2


def test_other_types_keys_and_tenants_have_jobs_of_their_own(submit: Submit, post: Post, table: Table) -> None:
    post(1)
    post(1, debounce_key="grace")
    submit(debounced(1), tenant="444455556666:AROAOTHER", trace="t")

    assert jobs_in(table) == 3


def test_a_submission_of_the_same_second_writes_nothing(post: Post, client: FaultyClient) -> None:
    post(1, replace=None)
    writes: list[bool] = []
    client.watch = writes.append

    assert post(1, replace=None).replayed
    assert writes == []


def test_a_submission_to_a_job_that_waits_is_one_write(post: Post, clock: Clock, client: FaultyClient) -> None:
    post(1)
    clock.now += SECOND
    writes: list[bool] = []
    client.watch = writes.append

    post(2)

    assert writes == [False, True]


def test_the_first_submission_of_a_burst_sets_its_end(post: Post, clock: Clock) -> None:
    first = post(1, debounce_max=40 * SECOND)
    clock.now += 25 * SECOND

    job = post(2, debounce_max=timedelta(hours=1)).job

    assert job.due == quiet_after(first.job.created_at, 40 * SECOND)


def test_a_submission_after_the_job_has_begun_makes_the_next_job(post: Post, clock: Clock, store: JobStore) -> None:
    first = post(1).job
    clock.now += 31 * SECOND
    running = claimed(store, first, now=clock.now)

    second = post(2)

    assert not second.replayed
    assert second.job.id != first.id
    assert stored(store, first) == running
    assert post(3).job.id == second.job.id


def test_a_submission_just_before_a_claim_is_in_the_run(post: Post, clock: Clock, store: JobStore) -> None:
    post(1, debounce=timedelta(0))

    job = post(2, debounce=timedelta(0)).job

    assert claimed(store, job, now=clock.now).payload.text == '{"n":2}'


def test_a_claim_between_read_and_write_makes_the_next_job(
    post: Post, clock: Clock, store: JobStore, table: Table, client: FaultyClient
) -> None:
    first = post(1).job
    clock.now += 31 * SECOND
    other = DynamoJobStore(table.client, table=table.name, retention=LEASE)
    meet(client, lambda: claimed(other, first, now=clock.now))

    second = post(2)

    assert (second.replayed, second.job.payload.text) == (False, '{"n":2}')
    assert stored(store, first).payload.text == '{"n":1}'


def test_two_first_submissions_at_once_make_one_job(
    post: Post, post_elsewhere: Post, table: Table, client: FaultyClient
) -> None:
    answers: list[Accepted] = []
    meet(client, lambda: answers.append(post_elsewhere(1)))

    second = post(2)

    assert (second.replayed, second.job.id, second.job.payload.text) == (True, answers[0].job.id, '{"n":2}')
    assert jobs_in(table) == 1


def test_two_moves_at_once_leave_the_later_time_and_the_payload_of_the_last_write(
    post: Post, post_elsewhere: Post, clock: Clock, client: FaultyClient
) -> None:
    post(1)
    clock.now += 5 * SECOND

    def later() -> None:
        clock.now += 5 * SECOND
        post_elsewhere(2)
        clock.now -= 5 * SECOND

    meet(client, later)

    job = post(3).job

    # The clock of the third submission is 5 s behind.
    assert (job.payload.text, job.due) == ('{"n":3}', quiet_after(clock.now, 30 * SECOND))


def test_a_flood_without_debounce_sends_one_message_and_starts_at_once(post: Post, clock: Clock) -> None:
    first = post(1, debounce=timedelta(0), debounce_max=60 * SECOND).job
    clock.now += SECOND

    job = post(2, debounce=timedelta(0), debounce_max=60 * SECOND).job

    assert (job.payload.text, job.due, job.generation) == ('{"n":2}', first.due, 1)


@pytest.mark.parametrize("replace_", [None, "payload"])
def test_a_job_that_is_late_does_not_expire_with_its_last_submission(
    post: Post, clock: Clock, store: JobStore, replace_: str | None
) -> None:
    asked = {"debounce": SECOND, "debounce_max": 2 * SECOND, "max_age": 10 * SECOND, "replace": replace_}
    first = post(1, **asked).job
    # Its lane is late.
    clock.now += 60 * SECOND
    job = post(2, **asked).job
    clock.now += 9 * SECOND

    running = claimed(store, job, now=clock.now)

    assert (job.id, job.due) == (first.id, first.due)
    assert outcome_before_run(running, RetryPolicy(max_attempts=3), now=clock.now) is None


def test_a_cancelled_job_is_followed_by_another_one(post: Post, store: JobStore) -> None:
    first = post(1).job
    store.cancel(first, now=NOW)

    assert not post(2).replayed


def test_a_deleted_job_is_followed_by_another_one(post: Post, table: Table) -> None:
    first = post(1).job
    table.client.delete_item(TableName=table.name, Key={"pk": {"S": f"{first.tenant}#{first.id}"}})

    assert not post(2).replayed


def test_large_payloads_are_stored_apart_each_in_a_place_of_its_own(
    post: Post, payloads: DynamoPayloads, table: Table
) -> None:
    first = post(payload=LARGE | {"n": 1}).job
    second = post(payload=LARGE | {"n": 2}).job

    assert ('"n":1' in payload(first, payloads), '"n":2' in payload(second, payloads)) == (True, True)
    # Publish deletes the first.
    assert payloads_in(table) == 2
    assert post(3).job.payload.text == '{"n":3}'


def test_the_payload_of_a_refused_write_is_deleted(
    post: Post, post_elsewhere: Post, table: Table, store: JobStore, monkeypatch: Any
) -> None:
    post(payload=LARGE)
    join = store.join_debounce
    met: list[Accepted] = []

    def after_another(*args: Any, **kwargs: Any) -> Job:
        if not met:
            met.append(post_elsewhere(payload=LARGE | {"n": 2}))
        return join(*args, **kwargs)

    monkeypatch.setattr(store, "join_debounce", after_another)

    job = post(payload=LARGE | {"n": 3}).job

    assert job.payload.location is not None
    # The payloads of the three submissions remain. The one that the refused write would have named is gone.
    assert payloads_in(table) == 3


def test_a_begin_that_another_submission_preceded_leaves_no_payload(
    post: Post, post_elsewhere: Post, table: Table, store: JobStore, monkeypatch: Any
) -> None:
    begin = store.begin_debounce
    met: list[Accepted] = []

    def after_another(*args: Any, **kwargs: Any) -> Job:
        if not met:
            met.append(post_elsewhere(1))
        return begin(*args, **kwargs)

    monkeypatch.setattr(store, "begin_debounce", after_another)

    assert post(payload=LARGE).replayed
    assert (jobs_in(table), payloads_in(table)) == (1, 1)


def test_a_lost_answer_does_not_count_twice(post: Post, client: FaultyClient, clock: Clock) -> None:
    client.faults = [Fault.SENT_TWICE]
    first = post(1)
    clock.now += 5 * SECOND
    client.faults = [Fault.SENT_TWICE]

    second = post(2)

    assert (first.replayed, second.replayed, second.job.id) == (False, True, first.job.id)
    assert second.job.burst
    assert (second.job.burst.moves, second.job.burst.replacements) == (1, 1)


def test_a_send_that_arrives_late_does_not_bring_back_an_earlier_payload(
    post: Post, client: FaultyClient, table: Table, store: JobStore, monkeypatch: Any
) -> None:
    post(1)
    update = client.update_item
    sent: list[Any] = []

    def update_item(**request: Any) -> Any:
        sent.append(request)
        return update(**request)

    monkeypatch.setattr(client, "update_item", update_item, raising=False)
    # The network holds up its first send, so the SDK sends it again, with success.
    post(2)
    job = post(3).job

    with pytest.raises(ClientError, match="ConditionalCheckFailed"):
        table.client.update_item(**sent[0])

    assert stored(store, job) == job
    assert job.payload.text == '{"n":3}'


def test_a_submission_that_others_always_precede_is_asked_to_come_again(
    post: Post, store: JobStore, monkeypatch: Any
) -> None:
    post(1)
    looks: list[int] = []

    def refuse(job: Job, *_args: Any, **_kwargs: Any) -> Job:
        looks.append(1)
        raise WriteRefusedError(Write.JOIN, job)

    monkeypatch.setattr(store, "join_debounce", refuse)

    with pytest.raises(StoreUnavailableError):
        post(2)
    assert len(looks) == MOST_LOOKS


def test_an_admission_that_defers_the_job_moves_the_end_of_its_burst(
    store: JobStore, payloads: DynamoPayloads, clock: Clock
) -> None:
    late = NOW + timedelta(hours=1)
    submit = submit_with(store, payloads, clock, lambda job: replace(job, state=State.SCHEDULED, due=late, run_at=late))

    job = submit(debounced(1), tenant=TENANT, trace="t").job

    assert job.burst
    assert (job.due, job.burst.until, job.burst.sent_for) == (late, late, late)


def test_submissions_of_one_burst_in_a_batch_are_written_in_their_order(submit: Submit, table: Table) -> None:
    answers = submit_all(submit, [debounced(n) for n in range(5)], tenant=TENANT, trace="t", overlap=4)

    jobs = [answer.job for answer in answers if isinstance(answer, Accepted)]
    assert [job.payload.text for job in jobs] == [f'{{"n":{n}}}' for n in range(5)]
    assert jobs_in(table) == 1
