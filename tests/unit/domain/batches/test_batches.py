"""The rules of batches: what a look at the members says, when a batch is closed, and when it looks again."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.support.builders import NOW, SECOND, a_job, with_changes
from tidemill.domain.batches import batches
from tidemill.domain.batches.batches import (
    CALLBACKS,
    CLOSED,
    LONGEST_OPEN,
    MISSING,
    PAGES,
    UNREADABLE,
    Batch,
    Look,
    Page,
    closed_at,
    is_batch,
    is_cancelling,
    pause,
    to_redrive,
)
from tidemill.domain.batches.composite_cancels import CANCELLED, is_cancelled
from tidemill.domain.job import Job, Redrive
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.submission.submission import Submission
from tidemill.domain.waiting.signals import Signal
from tidemill.names import BATCH_TYPE

MINUTE = timedelta(minutes=1)
MILLISECOND = timedelta(milliseconds=1)
#: One unfinished member in each state. Its id is its state.
IN_EACH_STATE = {state.value: a_job(id=state.value, state=state) for state in State}
LIVE = {State.WAITING, State.SCHEDULED, State.QUEUED, State.RUNNING, State.RETRYING, State.PARKED}


def look_at(*states: str, unreadable: frozenset[str] = frozenset()) -> Look:
    """Look at one page with a member in each of the states. `missing` has no document."""
    jobs = {name: IN_EACH_STATE[name] for name in states if name in IN_EACH_STATE}
    page = Page(number=0, members=frozenset(states))
    return Look(at=NOW, pages=[page], jobs=jobs, unreadable=unreadable)


def batch_with(*signals: str, **changes: Any) -> Job:
    """Each signal came a minute after the one before, the first a minute after the opening."""
    came = tuple(Signal(name=name, at=NOW + (n + 1) * MINUTE, data="null") for n, name in enumerate(signals))
    return a_job(**{"type": BATCH_TYPE, "signals": came} | changes)


def redrive_at(at: datetime, token: str = "t") -> Redrive:
    return Redrive(token=token, at=at, by="ada")


def test_a_batch_names_the_callbacks_that_it_has() -> None:
    done, failed, at_end = (Submission(type=name) for name in ("done", "failed", "at-end"))

    assert Batch().callbacks == {}
    assert Batch(on_failure=failed).callbacks == {"on_failure": failed}
    all_of_them = Batch(on_success=done, on_failure=failed, on_complete=at_end).callbacks
    assert all_of_them == {"on_success": done, "on_failure": failed, "on_complete": at_end}
    assert tuple(all_of_them) == CALLBACKS, "a request may have each of them"


@pytest.mark.parametrize(
    ("state", "live", "failed"),
    [
        *((state, state in LIVE, state is State.DEAD) for state in State),
        (MISSING, False, True),
        (UNREADABLE, True, False),
    ],
)
def test_a_look_says_of_each_state_whether_it_is_at_rest_and_whether_it_failed(
    state: str, *, live: bool, failed: bool
) -> None:
    look = look_at(state, unreadable=frozenset({UNREADABLE}))

    assert look.counts == {state: 1}
    assert (look.total, look.live, look.failed) == (1, live, failed)


def test_the_counts_of_a_look_have_each_state_that_occurs_in_the_order_of_the_names() -> None:
    look = look_at(State.SUCCEEDED, State.RUNNING, State.DEAD, MISSING)
    ended = {State.SUCCEEDED: frozenset({"a", "b"}), State.EXPIRED: frozenset[str]()}
    seen = Page(number=1, members=frozenset({"a", "b"}), ended=ended)

    assert list(replace(look, pages=[*look.pages, seen]).counts.items()) == [
        ("dead", 1),
        ("missing", 1),
        ("running", 1),
        ("succeeded", 3),
    ]


def test_a_page_knows_the_members_that_no_look_has_seen_at_their_end() -> None:
    ended = {State.SUCCEEDED: frozenset({"a"}), State.CANCELLED: frozenset({"b"})}

    assert Page(number=0, members=frozenset({"a", "b", "c"}), ended=ended).unfinished == {"c"}


def test_a_look_names_the_members_that_have_ended_for_good_since() -> None:
    look = look_at(*State, MISSING)

    assert look.newly_ended(look.pages[0]) == {
        state: frozenset({state.value}) for state in (State.SUCCEEDED, State.CANCELLED, State.EXPIRED)
    }


@pytest.mark.parametrize("closed", [True, False])
@pytest.mark.parametrize(("kept", "noted"), [(0 * MINUTE, False), (20 * MINUTE, False), (21 * MINUTE, True)])
def test_while_a_page_takes_members_the_end_of_a_job_whose_key_is_soon_free_is_not_noted(
    kept: timedelta, noted: bool, closed: bool
) -> None:
    job = with_changes(IN_EACH_STATE["cancelled"], id="a", expires_at=NOW + kept)
    look = Look(at=NOW, pages=[Page(number=0, members=frozenset({"a"}), closed=closed)], jobs={"a": job})

    expected = {State.CANCELLED: frozenset({"a"})} if noted or closed else {}
    assert look.newly_ended(look.pages[0]) == expected


def test_a_look_that_goes_on_knows_the_members_of_both_parts() -> None:
    first = replace(look_at(State.QUEUED, "old", unreadable=frozenset({"old"})), complete=False)
    second = Look(
        at=NOW + SECOND,
        pages=[Page(number=1, members=frozenset({"dead", "new"}))],
        jobs={"dead": IN_EACH_STATE["dead"]},
        unreadable=frozenset({"new"}),
    )

    both = first.with_more(second)

    assert both.counts == {"dead": 1, "queued": 1, "unreadable": 2}
    assert [page.number for page in both.pages] == [0, 1]
    assert (both.at, both.complete) == (NOW, False)


@pytest.mark.parametrize(
    ("look", "at_rest"),
    [
        (look_at(State.SUCCEEDED, State.DEAD, State.CANCELLED, State.EXPIRED), True),
        (look_at(State.SUCCEEDED, State.PARKED), False),
        (replace(look_at(State.SUCCEEDED), complete=False), False),
    ],
    ids=["all", "one is live", "some pages are not read"],
)
def test_a_batch_is_at_rest_once_all_pages_show_no_live_member(look: Look, *, at_rest: bool) -> None:
    assert look.at_rest(NOW) is at_rest


@pytest.mark.parametrize(("since", "believed"), [(MINUTE - MILLISECOND, False), (MINUTE, True)])
def test_a_missing_member_is_believed_a_minute_after_the_pages_were_closed(since: timedelta, *, believed: bool) -> None:
    assert look_at(State.SUCCEEDED, MISSING).at_rest(NOW - since) is believed
    assert look_at(State.SUCCEEDED).at_rest(NOW - since)


def test_one_page_has_room_for_its_share_of_the_largest_batch_and_six_standard_deviations() -> None:
    mean = batches.LARGEST_JOB_COUNT / PAGES
    deviation = (mean * (1 - 1 / PAGES)) ** 0.5

    assert mean + 6 * deviation < batches.MOST_ON_PAGE < mean + 7 * deviation


@pytest.mark.parametrize(
    ("signals", "closed"),
    [
        ((), None),
        (("other",), None),
        ((CLOSED,), MINUTE),
        ((CANCELLED,), MINUTE),
        (("other", CLOSED), 2 * MINUTE),
        ((CANCELLED, CLOSED), MINUTE),
    ],
)
def test_a_batch_is_closed_by_the_first_signal_that_closes_or_cancels_it(
    signals: tuple[str, ...], closed: timedelta | None
) -> None:
    assert closed_at(batch_with(*signals), now=NOW + 5 * MINUTE) == (closed and NOW + closed)


def test_a_batch_that_no_caller_closes_closes_by_itself_after_the_longest_time() -> None:
    batch = batch_with()

    assert closed_at(batch, now=NOW + LONGEST_OPEN - SECOND) is None
    assert closed_at(batch, now=NOW + LONGEST_OPEN) == NOW + LONGEST_OPEN
    assert closed_at(batch, now=NOW + 2 * LONGEST_OPEN) == NOW + LONGEST_OPEN


#: Whether it is cancelled as a whole, and whether it cancels its members.
CANCELS: Mapping[str, tuple[Job, bool, bool]] = {
    "open": (batch_with(), False, False),
    "closed": (batch_with(CLOSED), False, False),
    "cancelled, and not closed yet": (batch_with(CANCELLED), True, False),
    "cancelled": (batch_with(CANCELLED, CLOSED), True, True),
    "dead": (batch_with(CANCELLED, CLOSED, state=State.DEAD), True, False),
    "no batch": (batch_with(CANCELLED, CLOSED, type="test.job"), True, False),
}


@pytest.mark.parametrize("case", CANCELS)
def test_a_live_batch_cancels_its_members_once_it_is_cancelled_and_closed(case: str) -> None:
    batch, cancelled, cancelling = CANCELS[case]

    assert (is_cancelled(batch), is_cancelling(batch)) == (cancelled, cancelling)


def test_only_a_job_of_the_type_of_batches_is_one() -> None:
    assert is_batch(batch_with())
    assert not is_batch(a_job())


def test_a_redrive_of_a_batch_redrives_the_members_that_were_dead_by_then() -> None:
    asked = NOW + 10 * MINUTE
    batch = batch_with(redrives=(redrive_at(NOW), redrive_at(asked)))
    before = a_job(state=State.DEAD, finished_at=asked - MILLISECOND)
    others = [
        a_job(state=State.DEAD, finished_at=asked),
        a_job(state=State.DEAD),
        a_job(state=State.SUCCEEDED, finished_at=NOW),
        a_job(state=State.QUEUED),
        # DynamoDB has not deleted it yet.
        a_job(state=State.DEAD, finished_at=NOW, expires_at=NOW),
    ]

    assert to_redrive(batch, [before, *others], now=NOW) == [before]
    assert to_redrive(replace(batch, redrives=()), [before, *others], now=NOW) == []


def test_a_member_that_dies_again_before_the_time_of_a_fast_clock_is_redriven_once() -> None:
    asked = redrive_at(NOW + 10 * MINUTE, "second")
    batch = batch_with(redrives=(redrive_at(NOW, "first"), asked))
    member = a_job(state=State.DEAD, finished_at=NOW + MINUTE, redrives=(redrive_at(NOW, "first"),))

    assert to_redrive(batch, [member], now=NOW) == [member]
    again = replace(member, redrives=(*member.redrives, replace(asked, at=NOW)))
    assert to_redrive(batch, [again], now=NOW) == []


@pytest.mark.parametrize(
    ("since", "expected"),
    [
        (timedelta(0), 2 * SECOND),
        (8 * SECOND, 2 * SECOND),
        (12 * SECOND, 3 * SECOND),
        (timedelta(minutes=59), timedelta(minutes=14, seconds=45)),
        (timedelta(minutes=60), timedelta(minutes=15)),
        (timedelta(days=2), timedelta(minutes=15)),
    ],
)
def test_a_batch_looks_again_after_a_quarter_of_the_time_since_its_close_or_its_last_redrive(
    since: timedelta, expected: timedelta
) -> None:
    assert pause(batch_with(), NOW, live=1_800, now=NOW + since) == expected
    redriven = batch_with(redrives=(redrive_at(NOW - MINUTE), redrive_at(NOW)))
    assert pause(redriven, NOW - timedelta(hours=5), live=1, now=NOW + since) == expected
    early = batch_with(redrives=(redrive_at(NOW - timedelta(hours=5)),))
    assert pause(early, NOW, live=1, now=NOW + since) == expected


def test_a_batch_with_many_jobs_that_have_not_ended_looks_less_often() -> None:
    day = timedelta(days=1)
    assert pause(batch_with(), NOW, live=10_000, now=NOW + day) == 5_000 * SECOND
