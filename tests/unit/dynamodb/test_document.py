"""Encoding and decoding of job items."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.builders import A_BURST, A_SIGNAL, A_STEP, AN_UNDO, NOW, a_job, an_error
from tidemill.aws.attribute_values import milliseconds, seconds
from tidemill.domain.corrections.undo import Undone
from tidemill.domain.errors import MalformedDocumentError, NewerSchemaError
from tidemill.domain.flows.flow_place import FlowPlace, Mark
from tidemill.domain.history import Transition, Why
from tidemill.domain.job import AttemptError, Job, Redrive
from tidemill.domain.job_parts import CancelRequest
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.waiting.holds import HoldCause
from tidemill.domain.waiting.signals import Awaited
from tidemill.domain.waiting.waiting import Cause, Wait
from tidemill.dynamodb import document
from tidemill.dynamodb.document import decode, encode, split_key
from tidemill.names import JOB_KEY, Lane

TEXTS = st.text(max_size=20)
NUMBERS = st.integers(min_value=0, max_value=2**53)
SECONDS = st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC)).map(  # noqa: DTZ001 - hypothesis adds it
    lambda instant: instant.replace(microsecond=0)
)
INSTANTS = st.builds(lambda second, fraction: second + timedelta(milliseconds=fraction), SECONDS, st.integers(0, 999))
ERRORS = st.builds(
    AttemptError, attempt=NUMBERS, at=INSTANTS, error_class=TEXTS, message=TEXTS, next_due=st.none() | INSTANTS
)
TRANSITIONS = st.builds(
    Transition,
    at=INSTANTS,
    state=st.sampled_from(State),
    cause=st.sampled_from([*Why, "held: limit", "ValueError", "many words, and spaces"]),
    attempt=st.none() | NUMBERS,
    worker=st.sampled_from(["", "request-1/version"]),
)
REDRIVES = st.builds(Redrive, token=TEXTS, at=INSTANTS, by=TEXTS)


def _maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


JOBS = st.builds(
    a_job,
    tenant=TEXTS,
    cancel=_maybe(st.builds(CancelRequest, by=TEXTS, reason=TEXTS)),
    id=st.uuids().map(str),
    type=TEXTS,
    payload=_maybe(TEXTS),
    payload_at=_maybe(TEXTS),
    run_at=_maybe(INSTANTS),
    group=_maybe(TEXTS),
    tags=st.lists(TEXTS, max_size=5).map(tuple),
    sequence=_maybe(NUMBERS),
    blocks=st.booleans(),
    checkpoint=_maybe(TEXTS),
    retention=_maybe(st.integers(1, 10**6).map(lambda count: timedelta(seconds=count))),
    body_hash=TEXTS,
    trace=TEXTS,
    generation=NUMBERS,
    attempt=NUMBERS,
    created_at=INSTANTS,
    due=_maybe(INSTANTS),
    ready_at=_maybe(INSTANTS),
    claimed_at=_maybe(INSTANTS),
    owner=_maybe(TEXTS),
    last_owner=_maybe(TEXTS),
    result=_maybe(TEXTS),
    errors=st.lists(ERRORS, max_size=3).map(tuple),
    redrives=st.lists(REDRIVES, max_size=3).map(tuple),
    history=st.lists(TRANSITIONS, max_size=3).map(tuple),
    nudged_at=_maybe(INSTANTS),
    finished_at=_maybe(INSTANTS),
    expires_at=_maybe(SECONDS),
)


@given(JOBS)
def test_a_decoded_job_equals_the_encoded_one(job: Job) -> None:
    assert decode(encode(job)) == job


def test_every_field_of_a_job_is_written() -> None:
    filled = a_job(
        **dict.fromkeys(("ready_at", "claimed_at", "nudged_at", "finished_at", "expires_at"), NOW),
        **dict.fromkeys(
            ("run_at", "deadline", "useful_until", "unique_until", "checkpoint_at", "cancel_requested_at"), NOW
        ),
        **dict.fromkeys(
            ("owner", "last_owner", "result", "group", "batch", "parent", "checkpoint", "payload_at"), "text"
        ),
        **dict.fromkeys(("releases", "sequence", "hops", "holds", "nudges", "progress_done", "progress_total"), 1),
        open_runs=1,
        hold_cause=HoldCause.LIMIT,
        death="permanent error",
        blocks=True,
        tags=("a",),
        cancel=CancelRequest(by="ada", reason="a typo"),
        history=(Transition(at=NOW, state=State.RUNNING, cause=Why.CLAIMED, worker="request/version"),),
        retention=timedelta(days=1),
        wait=Wait(cause=Cause.LIMIT, key="a", since=NOW),
        signals=(A_SIGNAL,),
        awaited=Awaited(cause=Cause.SIGNAL, name="approval", since=NOW, until=NOW, times=2),
        **dict.fromkeys(("undoes", "supersedes", "after_undo", "superseded_by"), "text"),
        burst=replace(A_BURST, moves=1, first_moved_at=NOW, replacements=1, first_replaced_at=NOW),
        flow=FlowPlace(id="f", node="a", mark=Mark.BLOCKED),
        **dict.fromkeys(("looks", "additions"), 1),
        undo=AN_UNDO,
        steps=(A_STEP, replace(A_STEP, name="ship", result="null")),
        dropped_steps=("book",),
        other_holds=((HoldCause.OUTAGE, 3),),
        undone=Undone(job_id="text", at=NOW, by="ada", reason="a typo"),
        errors=(an_error(),),
        redrives=(Redrive(token="t", at=NOW, by="ada"),),
    )

    item = encode(filled)

    assert decode(item).burst == filled.burst
    assert set(item) == set(document.PLACES) | {JOB_KEY, "schema"}


def test_the_holds_of_an_older_version_belong_to_no_cause() -> None:
    held = encode(a_job(holds=20, hold_cause=HoldCause.OUTAGE))
    del held["hold_cause"]

    assert [decode(held).held_by(cause) for cause in HoldCause] == [0] * len(HoldCause)


def test_a_cause_that_only_a_newer_version_knows_leaves_the_document_readable() -> None:
    held = encode(a_job(holds=20, hold_cause=HoldCause.OUTAGE)) | {"hold_cause": {"S": "weather"}}

    assert decode(held).holds.cause is None


def test_of_the_other_holds_those_by_a_known_cause_are_read() -> None:
    holds = ((HoldCause.OUTAGE, 3), (HoldCause.SUSPECT, 1))
    held = encode(a_job(holds=1, hold_cause=HoldCause.LIMIT, other_holds=holds))
    held["other_holds"]["M"]["weather"] = {"N": "2"}

    assert decode(held).holds.others == holds


def test_a_history_that_only_a_newer_version_can_read_leaves_the_document_readable() -> None:
    known = Transition(at=NOW, state="asleep", cause="a new cause", attempt=1)
    document = encode(a_job(history=(known,)))
    document["history"]["L"] += [{"S": "yesterday running - - x"}, {"S": "1 running"}, {"S": f"{10**30} dead 1 -"}]

    assert decode(document).history == (known,)


def test_fields_equal_to_their_default_are_omitted() -> None:
    assert {"due", "owner", "errors", "redrives", "expires_at"}.isdisjoint(encode(a_job(due=None)))


@pytest.mark.parametrize("tenant", ["111122223333:AROA", "with#a#hash", ""])
def test_the_key_separates_tenant_and_id(tenant: str) -> None:
    job = a_job(tenant=tenant)

    assert split_key(encode(job)) == (tenant, job.id)


@pytest.mark.parametrize(("microseconds", "expected"), [(0, "1000"), (1, "1001"), (999, "1001"), (1000, "1001")])
def test_times_are_rounded_up_so_that_no_job_starts_early(microseconds: int, expected: str) -> None:
    assert milliseconds(datetime(1970, 1, 1, 0, 0, 1, microseconds, UTC)) == {"N": expected}


@pytest.mark.parametrize(("microseconds", "expected"), [(0, "1"), (1, "2"), (999_999, "2")])
def test_the_ttl_is_rounded_up_so_that_no_job_expires_early(microseconds: int, expected: str) -> None:
    assert seconds(datetime(1970, 1, 1, 0, 0, 1, microseconds, UTC)) == {"N": expected}


def test_a_document_of_a_newer_schema_raises_newer_schema_error() -> None:
    with pytest.raises(NewerSchemaError, match="a document of schema 4; this code reads 3"):
        decode(encode(a_job()) | {"schema": {"N": "4"}})


@pytest.mark.parametrize(
    "change",
    [
        {"schema": None},
        {"schema": {"N": "one"}},
        {"schema": {"S": "1"}},
        {JOB_KEY: None},
        {"state": {"S": "paused"}},
        {"lane": {"S": "fast"}},
        {"death": {"S": "boredom"}},
        {"generation": {"N": "1.5"}},
        {"attempt": None},
        {"due": {"S": "tomorrow"}},
        {"due": "tomorrow"},
        {"created_at": {"N": "9" * 30}},
        {"errors": {"L": [{"M": {}}]}},
        {"errors": {"L": [{"S": "no"}]}},
        {"redrives": {"M": {}}},
    ],
    ids=str,
)
def test_a_malformed_item_is_refused(change: dict[str, Any]) -> None:
    item = {name: value for name, value in (encode(a_job()) | change).items() if value is not None}

    with pytest.raises(MalformedDocumentError):
        decode(item)


def test_the_error_names_the_field_that_cannot_be_read() -> None:
    item = encode(a_job()) | {"lane": {"S": "urgent"}}

    with pytest.raises(
        MalformedDocumentError, match=r"the field 'lane' .* cannot be read: 'urgent' is not a valid Lane"
    ):
        decode(item)


def test_all_states_and_lanes_can_be_encoded() -> None:
    for state in State:
        for lane in Lane:
            assert decode(encode(a_job(state=state, lane=lane))).state is state


@pytest.mark.parametrize("group", [None, "g"])
@pytest.mark.parametrize("flow", [None, FlowPlace(id="f", node="a")])
def test_a_node_without_a_group_has_one_for_the_stream_alone(group: str | None, flow: FlowPlace | None) -> None:
    """One filter pattern of the stream gets publish the ends of nodes and of jobs of groups."""
    job = a_job(group=group, flow=flow)

    item = encode(job)

    assert item.get("group", {}).get("S") == (group or ("!node" if flow else None))
    assert decode(item) == job


def test_a_group_of_any_name_stays_in_a_job_without_a_flow() -> None:
    job = a_job(group="!node")

    assert decode(encode(job)) == job
