"""Claims and successes of several jobs in one call: what each writes, what refuses it, and how an answer is judged."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from tests.support.builders import (
    LEASE,
    NOW,
    RETENTION,
    SECOND,
    SETTLEMENTS,
    a_job,
    brought_to,
    claimed,
    fresh_token,
    stored,
    with_changes,
)
from tests.support.job_tables import Table
from tests.support.statements import statements_over
from tidemill.application.attempt.grouped_commit import FirstClaim
from tidemill.application.ports import Settling
from tidemill.domain.dispatch.job_message import FirstRun, reference_to
from tidemill.domain.errors import WriteRefusedError
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.dynamodb.attempt.grouped_writes import DynamoGroupedWrites
from tidemill.dynamodb.indexes import NOT_LISTED
from tidemill.dynamodb.job_store import DynamoJobStore

Change = Callable[[Sequence[Any]], Sequence[Any]]


class Client:
    """Passes every call on. `change` may change the answers to the statements, or raise instead."""

    def __init__(self, client: Any, execute: Callable[..., Any]) -> None:
        self._client = client
        self._execute = execute
        #: One for each call of BatchExecuteStatement; no change once they are used up.
        self.changes: list[Change] = []
        self.before: list[Callable[[], None]] = []
        self.read: Callable[..., Any] = client.batch_get_item
        self.sent: list[Sequence[Mapping[str, Any]]] = []

    def batch_execute_statement(self, *, Statements: Sequence[Mapping[str, Any]]) -> Any:  # noqa: N803 - as boto3 calls it
        self.sent.append(Statements)
        if self.before:
            self.before.pop(0)()
        answers = self._execute(Statements=Statements)["Responses"]
        return {"Responses": self.changes.pop(0)(answers) if self.changes else answers}

    def batch_get_item(self, **request: Any) -> Any:
        return self.read(**request)


@pytest.fixture
def statements(table: Table, request: pytest.FixtureRequest) -> Client:
    on_moto = "moto" in request.node.name
    execute = statements_over(table.client) if on_moto else table.client.batch_execute_statement
    return Client(table.client, execute)


@pytest.fixture
def failures() -> list[str]:
    return []


@pytest.fixture
def writes(
    table: Table, statements: Client, failures: list[str], monkeypatch: pytest.MonkeyPatch
) -> DynamoGroupedWrites:
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    return DynamoGroupedWrites(
        statements,  # type: ignore[arg-type]  # a proxy
        table=table.name,
        retention=RETENTION,
        indexes=NOT_LISTED,
        failed=failures.append,
    )


def _claim(job: Job, *, token: str | None = None, now: datetime = NOW, **changes: Any) -> FirstClaim:
    reference = reference_to(job)
    first_run = reference.first_run or FirstRun(type=job.type, due=job.due or NOW)
    return FirstClaim(
        reference=dataclasses.replace(reference, **changes),
        first_run=first_run,
        token=token or fresh_token(),
        now=now,
        lease_end=now + LEASE,
        worker="request/version",
    )


def _ready(store: DynamoJobStore, count: int = 3) -> list[Job]:
    return [brought_to(store, State.QUEUED) for _ in range(count)]


def _success(job: Job, **changes: Any) -> Settling:
    return Settling(job=job, settlement=replace(SETTLEMENTS[State.SUCCEEDED], **changes), now=NOW + SECOND)


def test_a_claim_of_several_writes_what_a_claim_of_each_would(
    store: DynamoJobStore, writes: DynamoGroupedWrites, statements: Client
) -> None:
    jobs, alone = _ready(store), brought_to(store, State.QUEUED)
    claims = [_claim(job) for job in jobs]

    answers = writes.claim(claims)

    assert answers == [stored(store, job) for job in jobs]
    single = store.claim(reference_to(alone), token="another", now=NOW, lease_end=NOW + LEASE, worker="request/version")
    expected = [
        with_changes(single, id=job.id, owner=claim.token, created_at=job.created_at)
        for job, claim in zip(jobs, claims, strict=True)
    ]
    assert answers == expected
    assert len(statements.sent) == 1


def test_a_success_of_several_writes_what_a_settle_of_each_would(
    store: DynamoJobStore, writes: DynamoGroupedWrites, table: Table
) -> None:
    running = [claimed(store, job) for job in _ready(store)]
    alone = claimed(store, brought_to(store, State.QUEUED), token="another")

    answers = writes.settle([_success(job) for job in running])

    assert answers == running
    store.settle(alone, SETTLEMENTS[State.SUCCEEDED], now=NOW + SECOND)
    like = table.item(alone)
    assert like
    for job in running:
        item = table.item(job)
        assert item
        own = {"pk": like["pk"], "last_owner": like["last_owner"]}
        assert item | own == like


@pytest.mark.parametrize(
    "spoil",
    [
        lambda job: {"generation": job.generation + 1},
        lambda job: {"due": job.due + SECOND},
        lambda job: {"type": "test.other"},
        lambda job: {"attempt": 1},
        lambda job: {"history": claimed_history(job)},
    ],
    ids=["another generation", "another time", "another type", "a run without history", "a history"],
)
def test_a_document_that_is_not_as_the_message_says_refuses_the_claim_and_no_other(
    store: DynamoJobStore, writes: DynamoGroupedWrites, table: Table, spoil: Callable[[Job], dict[str, Any]]
) -> None:
    first, second = _ready(store, 2)
    table.put(with_changes(first, **spoil(first)))
    before = stored(store, first)

    refused, taken = writes.claim([_claim(first), _claim(second)])

    assert not isinstance(refused, Job)
    assert isinstance(taken, Job)
    assert stored(store, first) == before


def claimed_history(job: Job) -> Any:
    from tidemill.domain.history import Transition, Why

    return (Transition(at=job.created_at, state=State.QUEUED, cause=Why.DUE),)


def test_a_refusal_that_a_claim_of_one_would_meet_is_reported_with_its_document(
    store: DynamoJobStore, writes: DynamoGroupedWrites
) -> None:
    leased, stale, ready = _ready(store)
    running = claimed(store, leased)
    claimed_once = claimed(store, stale)
    store.settle(claimed_once, SETTLEMENTS[State.RETRYING], now=NOW)

    answers = writes.claim([_claim(leased), _claim(stale), _claim(ready)])

    refusals = [answer for answer in answers if isinstance(answer, WriteRefusedError)]
    assert [refusal.current for refusal in refusals] == [running, stored(store, stale)]
    assert isinstance(answers[2], Job)


def test_a_refusal_by_the_condition_of_a_first_attempt_alone_is_left_to_a_claim_of_one(
    store: DynamoJobStore, writes: DynamoGroupedWrites, table: Table
) -> None:
    woken, ready = _ready(store, 2)
    table.put(replace(woken, history=claimed_history(woken)))

    answers = writes.claim([_claim(woken), _claim(ready)])

    assert answers[0] is None
    assert claimed(store, woken).attempt == 1


def test_a_missing_document_is_left_to_a_claim_of_one(store: DynamoJobStore, writes: DynamoGroupedWrites) -> None:
    (ready,) = _ready(store, 1)

    missing, taken = writes.claim([_claim(a_job()), _claim(ready)])

    assert missing is None
    assert isinstance(taken, Job)


@pytest.mark.parametrize("ready", [0, 2])
def test_only_the_documents_of_claims_that_were_written_are_read(
    store: DynamoJobStore, writes: DynamoGroupedWrites, statements: Client, ready: int
) -> None:
    (taken,), jobs = _ready(store, 1), _ready(store, ready)
    claimed(store, taken)
    read: list[list[str]] = []

    def noted(**request: Any) -> Any:
        (asked,) = request["RequestItems"].values()
        read.append([key["pk"]["S"] for key in asked["Keys"]])
        return statements._client.batch_get_item(**request)

    statements.read = noted
    missing, refused, *written = writes.claim([_claim(job) for job in (a_job(), taken, *jobs)])

    assert missing is None
    assert isinstance(refused, WriteRefusedError)
    assert written == [stored(store, job) for job in jobs]
    assert read == ([[f"{job.tenant}#{job.id}" for job in jobs]] if jobs else [])


def test_a_claim_whose_answer_was_lost_is_judged_from_the_returned_document(
    store: DynamoJobStore, writes: DynamoGroupedWrites
) -> None:
    """The SDK sends the call again."""
    claims = [_claim(job) for job in _ready(store)]
    first = writes.claim(claims)

    again = writes.claim(claims)

    assert again == first


def test_a_success_whose_answer_was_lost_is_judged_from_the_returned_document(
    store: DynamoJobStore, writes: DynamoGroupedWrites
) -> None:
    running = [claimed(store, job) for job in _ready(store)]
    writes.settle([_success(job) for job in running])

    assert writes.settle([_success(job) for job in running]) == running


def test_a_run_that_lost_its_lease_cannot_settle(store: DynamoJobStore, writes: DynamoGroupedWrites) -> None:
    lost, kept = (claimed(store, job) for job in _ready(store, 2))
    taken_over = claimed(store, lost, now=NOW + LEASE)

    refused, settled = writes.settle([_success(lost), _success(kept)])

    assert isinstance(refused, WriteRefusedError)
    assert refused.current == taken_over == stored(store, lost)
    assert settled == kept


def test_only_documents_whose_owner_is_the_own_token_are_believed(
    store: DynamoJobStore, writes: DynamoGroupedWrites, statements: Client
) -> None:
    """Another worker has claimed the job since, because this one was frozen for longer than its lease."""
    lost, kept = _ready(store, 2)
    claims = [_claim(lost), _claim(kept)]

    def taken_over(**request: Any) -> Any:
        claimed(store, lost, now=NOW + LEASE)
        return statements._client.batch_get_item(**request)

    statements.read = taken_over

    answers = writes.claim(claims)

    assert answers == [None, stored(store, kept)]


def test_documents_that_a_throttled_read_leaves_out_are_left_to_claims_of_one(
    store: DynamoJobStore, writes: DynamoGroupedWrites, statements: Client, failures: list[str]
) -> None:
    jobs = _ready(store, 2)
    claims = [_claim(job) for job in jobs]
    statements.read = lambda **request: {"Responses": {}, "UnprocessedKeys": request["RequestItems"]}

    assert writes.claim(claims) == [None, None]
    assert failures == []
    for claim in claims:
        # It finds its own claim.
        job = store.claim(claim.reference, token=claim.token, now=NOW, lease_end=NOW + LEASE)
        assert (job.lease.owner, job.attempt) == (claim.token, 1)


def _failing(*codes: str | None) -> Change:
    def change(answers: Sequence[Any]) -> Sequence[Any]:
        pairs = zip(answers, [*codes, *[None] * len(answers)], strict=False)
        return [{"Error": {"Code": code, "Message": "why"}} if code else answer for answer, code in pairs]

    return change


@pytest.mark.parametrize(
    "code",
    [
        "ProvisionedThroughputExceeded",
        "InternalServerError",
        "RequestLimitExceeded",
        "ThrottlingError",
        "TransactionConflict",
    ],
)
def test_a_throttled_statement_is_sent_again_by_itself(
    store: DynamoJobStore, writes: DynamoGroupedWrites, statements: Client, failures: list[str], code: str
) -> None:
    jobs = _ready(store)
    claims = [_claim(job) for job in jobs]
    statements.changes = [_failing(None, code)]

    answers = writes.claim(claims)

    assert answers == [stored(store, job) for job in jobs]
    assert [len(sent) for sent in statements.sent] == [3, 1]
    assert failures == []


def test_a_statement_that_stays_throttled_is_left_to_the_call_of_one(
    store: DynamoJobStore, writes: DynamoGroupedWrites, statements: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr("time.sleep", pauses.append)
    running = [claimed(store, job) for job in _ready(store, 2)]
    statements.changes = [_failing("ThrottlingError")] * 5

    assert writes.settle([_success(job) for job in running]) == [None, running[1]]
    assert [len(sent) for sent in statements.sent] == [2, 1, 1]
    assert pauses == [0.1, 0.2]


def test_a_denied_statement_is_reported_and_left_to_the_call_of_one(
    store: DynamoJobStore, writes: DynamoGroupedWrites, statements: Client, failures: list[str]
) -> None:
    jobs = _ready(store, 2)
    statements.changes = [_failing("AccessDenied", "ValidationError")]

    assert writes.claim([_claim(job) for job in jobs]) == [None, None]
    assert failures == ["AccessDenied: why", "ValidationError: why"]
    assert len(statements.sent) == 1


def _errors() -> Iterator[Exception]:
    for code in ("AccessDeniedException", "ThrottlingException", "ValidationException"):
        yield ClientError({"Error": {"Code": code, "Message": "no"}}, "BatchExecuteStatement")
    yield ReadTimeoutError(endpoint_url="https://dynamodb.invalid")
    yield KeyError("Responses")


@pytest.mark.parametrize("error", list(_errors()), ids=lambda error: type(error).__name__ + str(error)[:60])
def test_a_call_that_fails_is_reported_and_left_to_calls_of_one(
    store: DynamoJobStore, writes: DynamoGroupedWrites, statements: Client, failures: list[str], error: Exception
) -> None:
    jobs = _ready(store, 2)

    def fail() -> None:
        raise error

    statements.before = [fail, fail]

    assert writes.claim([_claim(job) for job in jobs]) == [None, None]
    running = [claimed(store, job) for job in jobs]
    assert writes.settle([_success(job) for job in running]) == [None, None]
    assert len(failures) == 2


def test_a_settlement_that_no_statement_can_say_is_left_to_the_call_of_one(
    store: DynamoJobStore, writes: DynamoGroupedWrites, statements: Client
) -> None:
    first, second = (claimed(store, job) for job in _ready(store, 2))
    retried = Settling(job=first, settlement=SETTLEMENTS[State.RETRYING], now=NOW)

    assert writes.settle([retried, _success(second)]) == [None, second]
    assert [len(sent) for sent in statements.sent] == [1]


def test_each_statement_is_of_another_item_and_asks_for_the_document_that_refuses_it(
    store: DynamoJobStore, writes: DynamoGroupedWrites, statements: Client
) -> None:
    writes.claim([_claim(job) for job in _ready(store)])

    (sent,) = statements.sent
    assert {statement["ReturnValuesOnConditionCheckFailure"] for statement in sent} == {"ALL_OLD"}
    assert len({str(statement["Parameters"]) for statement in sent}) == 3
