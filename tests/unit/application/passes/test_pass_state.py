"""When a pass begins, who holds it, and how far a segment was read."""

from datetime import timedelta

import pytest

from tests.support.builders import NOW, SECOND
from tidemill.application.passes.pass_state import SEGMENTS, Segment, TablePass, first_pass
from tidemill.domain.records import replace

MICROSECOND = timedelta(microseconds=1)
DAY = timedelta(days=1)
ENDED = TablePass(number=3, segments=5, began_at=NOW, covered_since=NOW - DAY, ended_at=NOW + SECOND)


def test_the_first_pass_covers_the_time_since_it_began() -> None:
    assert first_pass(NOW) == TablePass(number=1, segments=64, began_at=NOW, covered_since=NOW)
    assert first_pass(NOW).open


@pytest.mark.parametrize(("ahead", "held"), [(MICROSECOND, True), (timedelta(0), False), (-SECOND, False)])
def test_a_pass_is_held_until_its_time_is_over(ahead: timedelta, *, held: bool) -> None:
    assert replace(ENDED, held_until=NOW + ahead).held(NOW) is held
    assert not ENDED.held(NOW)


def test_an_open_pass_goes_on_as_it_is() -> None:
    opened = replace(ENDED, ended_at=None, asked=True)

    assert opened.workable(NOW + 9 * DAY) == opened


@pytest.mark.parametrize(
    ("asked", "after", "begins"),
    [(False, DAY - MICROSECOND, False), (False, DAY, True), (True, SECOND, True), (True, DAY, True)],
)
def test_the_next_pass_begins_a_day_after_the_last_began_or_when_it_was_asked_for(
    after: timedelta, *, asked: bool, begins: bool
) -> None:
    now = NOW + after
    following = replace(ENDED, asked=asked, held_by="a run", version="v").workable(now)

    expected = TablePass(
        number=4, segments=SEGMENTS, began_at=now, covered_since=NOW - DAY, held_until=ENDED.held_until, version="v"
    )
    assert following == (expected if begins else None)


def test_a_pass_that_ends_has_covered_the_time_since_it_began() -> None:
    assert replace(ENDED, ended_at=None).ended(NOW + DAY) == replace(ENDED, ended_at=NOW + DAY, covered_since=NOW)


def test_a_segment_ends_with_the_page_that_has_no_cursor() -> None:
    segment = Segment(pass_number=1, number=2, items=3, tries=4)

    assert segment.past("k", 5) == replace(segment, cursor="k", items=8, tries=0)
    assert segment.past("k", 5).past(None, 1) == replace(segment, cursor=None, items=9, tries=0, done=True)


def test_a_segment_begins_without_an_item_and_without_a_try() -> None:
    begin = Segment(pass_number=1, number=2)
    assert begin == Segment(pass_number=1, number=2, cursor=None, done=False, items=0, tries=0, version=None)
