"""The state of a pass in the table: a write replaces the version that was read, and nothing else."""

import pytest

from tests.support.builders import NOW, SECOND, fresh_token
from tests.support.faulty_client import Fault, FaultyClient
from tests.support.job_tables import Table
from tidemill.application.passes.pass_state import Segment, TablePass, first_pass
from tidemill.domain.errors import StoreUnavailableError
from tidemill.domain.records import replace
from tidemill.dynamodb.passes.pass_store import DynamoPasses

FIRST = first_pass(NOW)
#: No field has its default.
HELD = TablePass(
    number=7,
    segments=3,
    began_at=NOW,
    covered_since=NOW - SECOND,
    ended_at=NOW + SECOND,
    asked=True,
    held_by="a run",
    held_until=NOW + 2 * SECOND,
)


@pytest.fixture
def passes(client: FaultyClient, table: Table) -> DynamoPasses:
    return DynamoPasses(client, table=table.name, new_token=fresh_token)  # type: ignore[arg-type]  # a proxy


def read(passes: DynamoPasses) -> TablePass:
    found = passes.read()
    assert found is not None
    return found


@pytest.mark.parametrize("table_pass", [FIRST, HELD])
def test_a_pass_is_read_as_it_was_written(passes: DynamoPasses, table_pass: TablePass) -> None:
    assert passes.read() is None
    assert passes.write(table_pass)

    found = read(passes)

    assert found.version is not None
    assert found == replace(table_pass, version=found.version)


def test_of_two_runs_that_read_the_same_pass_one_writes(passes: DynamoPasses) -> None:
    assert [passes.write(FIRST), passes.write(replace(FIRST, asked=True))] == [True, False]
    seen = read(passes)
    assert not seen.asked

    assert [passes.write(seen.ended(NOW)), passes.write(replace(seen, asked=True))] == [True, False]
    ended = read(passes)
    assert (ended.ended_at, ended.asked) == (NOW, False)
    assert ended.version != seen.version


def test_of_two_runs_that_read_the_same_segment_one_saves(passes: DynamoPasses) -> None:
    first = passes.segment(FIRST, 4)
    assert first == Segment(pass_number=1, number=4)

    saved = passes.save(first.past("a key", 20))

    assert saved is not None
    assert saved == passes.segment(FIRST, 4)
    assert (saved.cursor, saved.items, saved.done) == ("a key", 20, False)
    assert passes.save(first.past("another", 10)) is None

    ended = passes.save(saved.past(None, 5))
    assert ended is not None
    assert (ended.cursor, ended.items, ended.done) == (None, 25, True)
    assert passes.save(replace(saved, tries=1)) is None
    assert passes.segment(FIRST, 4) == ended
    assert passes.segment(FIRST, 5) == Segment(pass_number=1, number=5)


def test_a_segment_that_failed_says_how_often(passes: DynamoPasses) -> None:
    saved = passes.save(replace(passes.segment(FIRST, 0), tries=2))

    assert saved is not None
    assert passes.segment(FIRST, 0).tries == 2


def test_a_later_pass_begins_each_segment_anew_over_its_item(passes: DynamoPasses) -> None:
    earlier = passes.save(passes.segment(FIRST, 0).past(None, 20))
    assert earlier is not None

    anew = passes.segment(replace(FIRST, number=2), 0)

    assert anew == Segment(pass_number=2, number=0, version=earlier.version)
    assert passes.save(anew.past("a key", 3)) is not None
    assert passes.save(earlier) is None, "a slow run of the earlier pass"


@pytest.mark.parametrize("anew", [True, False])
def test_a_write_that_the_sdk_sends_twice_is_made(passes: DynamoPasses, client: FaultyClient, anew: bool) -> None:
    if not anew:
        passes.write(FIRST)
        passes.save(passes.segment(FIRST, 0))
    seen, segment = passes.read() or FIRST, passes.segment(FIRST, 0)
    client.faults = [Fault.SENT_TWICE] * 2

    assert passes.write(replace(seen, asked=True))
    saved = passes.save(segment.past("a key", 1))

    assert read(passes).asked
    assert saved == passes.segment(FIRST, 0)


def test_a_write_without_an_answer_is_reported(passes: DynamoPasses, client: FaultyClient) -> None:
    client.faults = [Fault.NOT_SENT] * 2

    with pytest.raises(StoreUnavailableError):
        passes.write(FIRST)
    with pytest.raises(StoreUnavailableError):
        passes.save(passes.segment(FIRST, 0))
