"""The item of the governor in the jobs table."""

import pytest

from tests.support.builders import NOW, SECOND
from tests.support.faulty_client import Fault, FaultyClient
from tests.support.job_tables import Table
from tidemill.domain.admission.governor import WINDOW, Governed, Starts
from tidemill.domain.errors import StoreUnavailableError
from tidemill.domain.records import replace
from tidemill.dynamodb.admission.strain_item import DynamoGovernor

LATE, CALM = Starts(late=3, total=10), Starts(late=0, total=10)


@pytest.fixture
def governor(client: FaultyClient, table: Table) -> DynamoGovernor:
    return DynamoGovernor(client, table=table.name)  # type: ignore[arg-type]  # a proxy


def test_without_an_item_no_strain_is_known(governor: DynamoGovernor) -> None:
    assert governor.read() == Governed()


def test_the_starts_of_a_window_add_up_and_a_later_window_begins_anew(governor: DynamoGovernor) -> None:
    first = governor.add(LATE, now=NOW)
    assert first == Governed(starts=LATE, window_from=NOW, minute=LATE)

    second = governor.add(CALM, now=NOW + SECOND)
    assert second == Governed(starts=LATE + CALM, window_from=NOW, minute=LATE + CALM)

    later = governor.add(CALM, now=NOW + WINDOW)
    assert (later.starts, later.window_from, later.minute) == (CALM, NOW + WINDOW, LATE + CALM + CALM)
    assert governor.read() == later


def test_a_change_of_the_level_is_made_once(governor: DynamoGovernor) -> None:
    seen = governor.add(LATE, now=NOW)

    after = governor.move(seen, 1, now=NOW + SECOND)

    assert after == Governed(
        level=1, since=NOW + SECOND, window_from=NOW + SECOND, minute_from=NOW + SECOND, raised_by=LATE, version=1
    )
    assert governor.move(seen, 1, now=NOW + 2 * SECOND) is None
    assert governor.read() == after
    counted = governor.add(Starts(total=180), now=NOW + 89 * SECOND)
    fallen = governor.move(counted, 0, now=NOW + 91 * SECOND)
    assert fallen is not None
    assert (fallen.level, fallen.version, fallen.raised_by, fallen.usual) == (0, 2, LATE, 20)
    assert governor.read() == fallen
    assert governor.move(after, 0, now=NOW + 92 * SECOND) is None


def test_a_minute_begins_once_and_leaves_the_level_and_the_window(governor: DynamoGovernor) -> None:
    raised = governor.move(governor.add(LATE, now=NOW), 1, now=NOW)
    assert raised is not None
    seen = governor.add(LATE, now=NOW + SECOND)
    assert seen.minute == LATE

    governor.begin_minute(seen, now=NOW + 60 * SECOND)

    begun = governor.read()
    assert begun == replace(seen, minute=Starts(), minute_from=NOW + 60 * SECOND)
    counted = governor.add(CALM, now=NOW + 61 * SECOND)
    governor.begin_minute(seen, now=NOW + 62 * SECOND)
    assert governor.read() == counted
    assert governor.move(counted, 0, now=NOW + 120 * SECOND) is not None
    governor.begin_minute(counted, now=NOW + 121 * SECOND)
    assert governor.read().minute_from == NOW + 120 * SECOND


def test_a_change_that_the_sdk_sends_twice_is_made(governor: DynamoGovernor, client: FaultyClient) -> None:
    seen = governor.add(LATE, now=NOW)
    client.faults = [Fault.SENT_TWICE]

    after = governor.move(seen, 1, now=NOW + SECOND)

    assert after is not None
    assert after.level == 1


def test_a_store_that_does_not_respond_is_reported(governor: DynamoGovernor, client: FaultyClient) -> None:
    client.faults = [Fault.NOT_SENT, Fault.NOT_SENT]

    with pytest.raises(StoreUnavailableError):
        governor.add(LATE, now=NOW)
    with pytest.raises(StoreUnavailableError):
        governor.move(Governed(), 1, now=NOW)
