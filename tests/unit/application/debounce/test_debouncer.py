"""One debounced submission: when it begins a burst, when it becomes part of a job, and what it deletes if it loses."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.support.builders import A_BURST, NOW, SECOND, a_job, a_job_type, with_changes
from tidemill.application.debounce.debounce_placement import DebouncePlacement
from tidemill.application.debounce.debouncing import Debouncer
from tidemill.application.submission.checked_submission import check, hash_of, new_job
from tidemill.domain.errors import (
    MalformedDocumentError,
    StoreUnavailableError,
    TransactionConflictError,
    WriteRefusedError,
)
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.submission.submission import Submission

DUE = NOW + 30 * SECOND
BURST = replace(A_BURST, until=NOW + timedelta(hours=1), sent_for=DUE, last="")
#: The job of an earlier submission, which has not begun.
LAST = a_job(id="last", tenant="t", state=State.SCHEDULED, due=DUE, run_at=DUE, burst=BURST, payload='{"n":1}')
#: What a submission asks for a moment later.
JOB = with_changes(LAST, id="new", due=DUE + SECOND, run_at=DUE + SECOND, payload='{"n":2}')


class Store:
    """`DebounceStore` and `Payloads`. It refuses the writes of `refusals` first."""

    def __init__(self, last: Job | None = LAST, *refusals: Exception) -> None:
        self.last = last
        self.refusals = [*refusals]
        self.looks = 0
        self.begun: list[tuple[Job, str | None]] = []
        self.joined: list[tuple[Job, dict[str, Any]]] = []
        self.put: list[str | None] = []
        self.deleted: list[str | None] = []
        self.later: list[str | None] = []

    def debounced_job_id(self, tenant: str, name: str) -> str | None:
        assert (tenant, name) == ("t", BURST.name)
        self.looks += 1
        return self.last.id if self.last else None

    def get(self, tenant: str, job_id: str) -> Job | None:
        assert self.last is not None, "there is nothing to read"
        assert (tenant, job_id) == ("t", self.last.id)
        return self.last

    def begin_debounce(self, job: Job, *, after: str | None) -> Job:
        if self.refusals:
            raise self.refusals.pop(0)
        self.begun.append((job, after))
        return job

    def join_debounce(self, last: Job, joined: Job, **how: Any) -> Job:
        assert last == self.last
        if self.refusals:
            raise self.refusals.pop(0)
        self.joined.append((joined, how))
        return joined

    def put_away(self, job: Job, *, now: datetime | None = None) -> Job:
        self.put.append(job.payload.text)
        return with_changes(job, payload=None, payload_at=f"at-{len(self.put)}")

    def delete(self, tenant: str, job_id: str, location: str | None) -> None:
        assert tenant == "t"
        self.deleted.append(location)

    def delete_later(self, job: Job) -> None:
        self.later.append(job.payload.location)


def accepted(store: Store, job: Job) -> Any:
    return Debouncer(store=store, payloads=store, clock=lambda: NOW).accept(job)  # type: ignore[arg-type]


def replacing(job: Job) -> Job:
    assert job.burst is not None
    return replace(job, burst=replace(job.burst, replaces=True))


@pytest.mark.parametrize("last", [None, replace(LAST, state=State.SUCCEEDED), replace(LAST, attempt=1)])
def test_a_submission_begins_a_burst_if_no_job_takes_it(last: Job | None) -> None:
    store = Store(last)

    answer = accepted(store, JOB)

    ((begun, after),) = store.begun
    assert (answer.job, answer.replayed, after) == (begun, False, last.id if last else None)
    assert begun.burst == replace(BURST, sent_for=DUE + SECOND, last="new")
    assert store.put == ['{"n":2}']
    assert store.deleted == []


def test_a_job_that_was_made_later_than_its_burst_lets_the_burst_end_then() -> None:
    store = Store(None)
    late = BURST.until + SECOND
    accepted(store, replace(JOB, due=late))
    assert store.begun[0][0].burst == replace(BURST, until=late, sent_for=late, last="new")


def test_a_submission_that_moves_the_job_keeps_its_payload() -> None:
    store = Store()

    answer = accepted(store, JOB)

    ((joined, how),) = store.joined
    assert (answer.job, answer.replayed) == (joined, True)
    assert (joined.id, joined.due, joined.payload.text) == ("last", DUE + SECOND, '{"n":1}')
    assert how == {"by": "new", "now": NOW, "replaces": False}
    assert (store.put, store.begun) == ([], [])


def test_a_submission_that_changes_nothing_writes_nothing() -> None:
    store = Store()
    answer = accepted(store, replace(JOB, due=DUE, run_at=DUE))
    assert (answer.job, answer.replayed, store.joined) == (LAST, True, [])


@pytest.mark.parametrize("due", [DUE, DUE + SECOND])
def test_a_submission_that_replaces_the_payload_is_written_in_any_case(due: datetime) -> None:
    store = Store()

    accepted(store, replacing(replace(JOB, due=due, run_at=due)))

    ((joined, how),) = store.joined
    assert (joined.payload.location, how["replaces"], store.put, store.deleted) == ("at-1", True, ['{"n":2}'], [])


def test_a_replacement_that_is_the_same_is_written_too() -> None:
    store = Store()
    store.put_away = lambda job, **_: job  # type: ignore[method-assign]
    accepted(store, replacing(with_changes(JOB, due=DUE, run_at=DUE, payload=LAST.payload.text)))
    assert len(store.joined) == 1


@pytest.mark.parametrize("refusal", [WriteRefusedError("join", None), TransactionConflictError("busy")])
@pytest.mark.parametrize("replaces", [True, False])
def test_a_submission_that_loses_looks_again_and_deletes_only_its_own_payload(
    refusal: Exception, replaces: bool
) -> None:
    apart = with_changes(LAST, payload=None, payload_at="at-0")
    store = Store(apart, refusal)

    accepted(store, replacing(JOB) if replaces else JOB)

    assert (store.looks, len(store.joined)) == (2, 1)
    assert store.deleted == (["at-1"] if replaces else [])


def test_a_submission_that_loses_to_a_replacement_leaves_the_replaced_payload_to_publish() -> None:
    store = Store(with_changes(LAST, payload=None, payload_at="at-0"))

    def lose(*_: Any, **__: Any) -> Job:
        store.last = with_changes(LAST, payload=None, payload_at="at-9")
        raise WriteRefusedError("join", None)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "join_debounce", lose)
        with pytest.raises(StoreUnavailableError):
            accepted(store, JOB)
    assert store.deleted == []


def test_a_submission_whose_burst_another_began_looks_again() -> None:
    store = Store(None, WriteRefusedError("begin", None))
    accepted(store, JOB)
    assert (store.looks, store.deleted, len(store.begun)) == (2, ["at-1"], 1)


def test_a_submission_in_conflict_deletes_its_payload_later_and_is_refused() -> None:
    store = Store(None, TransactionConflictError("busy"))
    with pytest.raises(TransactionConflictError):
        accepted(store, JOB)
    assert (store.looks, store.deleted, store.later, store.begun) == (1, [], ["at-1"], [])


@pytest.mark.parametrize(("times", "taken"), [(11, True), (12, False)])
def test_a_submission_looks_twelve_times(times: int, taken: bool) -> None:
    store = Store(LAST, *[WriteRefusedError("join", None)] * times)
    if taken:
        assert accepted(store, JOB).replayed
    else:
        with pytest.raises(StoreUnavailableError, match="faster 12 times"):
            accepted(store, JOB)
    assert store.looks == 12


def test_a_job_without_a_time_takes_no_submission() -> None:
    with pytest.raises(MalformedDocumentError, match="the field 'due' of job last is missing"):
        accepted(Store(replace(LAST, due=None)), JOB)


@pytest.mark.parametrize("job", [replace(JOB, burst=None), replace(JOB, due=None)])
def test_only_a_job_with_a_burst_and_a_time_is_debounced(job: Job) -> None:
    with pytest.raises(AssertionError):
        accepted(Store(), job)


def burst(**changes: Any) -> Any:
    asked: dict[str, Any] = {"type": "mail", "debounce": 30 * SECOND, "debounce_key": "ada"}
    payload, tenant = changes.pop("payload", {"n": 1}), changes.pop("tenant", "t")
    submission = Submission(**asked | changes, payload=payload)
    checked = check(submission, a_job_type(), tenant=tenant, trace="t", now=NOW, new_id=lambda: "new", rules=())
    return DebouncePlacement(None).place(new_job(checked), checked).burst


def test_a_submission_without_debounce_has_no_burst() -> None:
    assert burst(debounce=None, debounce_key=None) is None


@pytest.mark.parametrize(
    ("changes", "same"),
    [
        ({}, True),
        ({"payload": {"n": 2}}, True),
        ({"debounce": SECOND, "replace": "payload"}, True),
        ({"debounce_key": "bob"}, False),
        ({"type": "bill"}, False),
        ({"tenant": "another"}, False),
        ({"debounce_key": None}, False),
    ],
)
def test_the_submissions_of_one_key_are_one_burst(changes: dict[str, Any], same: bool) -> None:
    assert (burst(**changes).name == burst().name) is same


def test_without_a_key_the_payload_takes_its_place() -> None:
    named = burst(debounce_key=None)
    assert named.name == burst(debounce_key=None).name
    assert named.name != burst(debounce_key=None, payload={"n": 2}).name
    # A key that looks like the hash of a payload is not a payload.
    assert named.key is None
    assert burst(debounce_key=hash_of({"n": 1})).name != named.name


@pytest.mark.parametrize(
    ("changes", "until"),
    [({}, 301), ({"debounce_max": 60 * SECOND}, 61)],
)
def test_a_burst_ends_after_ten_times_its_debounce(changes: dict[str, Any], until: int) -> None:
    found = burst(**changes)
    whole = NOW.replace(microsecond=0)
    assert (found.until, found.sent_for) == (whole + until * SECOND, whole + 31 * SECOND)
    assert (found.key, found.last, found.replaces) == ("ada", "", False)
    assert burst(replace="payload").replaces


def test_all_versions_of_the_code_give_a_burst_the_same_name() -> None:
    """Otherwise the submissions of a deployment would make two jobs."""
    assert burst().name == "bd510434-9288-5ee5-9190-b9a02fb6ef98"
    assert burst(debounce_key=None).name == "68ff2fe4-6426-592a-ac47-e374d6fa0e90"
