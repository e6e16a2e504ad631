"""Owed work: the first failure stays, and only a caller that saw the last failure may delete or put off."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import NOW, SECOND, TENANT
from tests.support.faulty_client import Fault, FaultyClient
from tests.support.in_memory_owed_work import InMemoryOwedWork
from tests.support.job_tables import Table
from tidemill.application.dispatch.owed import Kind, Owed, OwedWork, Work
from tidemill.application.ports import Part
from tidemill.domain.records import replace
from tidemill.dynamodb.dispatch.owed_items import DynamoOwedWork

WORK = Work(kind=Kind.ADVANCE, tenant=TENANT, name='parcels","of ad\u00e5')
OTHER = Work(kind=Kind.DISPATCH, tenant=TENANT, name='parcels","of ad\u00e5')
End = Callable[[OwedWork, Owed], None]
LATER = NOW + timedelta(minutes=1)


@pytest.fixture(params=["DynamoDB", "memory"])
def owed_work(request: pytest.FixtureRequest, table: Table) -> OwedWork:
    if request.param == "memory":
        return InMemoryOwedWork()
    return DynamoOwedWork(table.client, table=table.name)


def _pending(owed_work: OwedWork, before: Any = NOW) -> dict[Work, Owed]:
    return {owed.work: owed for owed in owed_work.pending(before=before)}


def _put_off(owed_work: OwedWork, owed: Owed) -> None:
    owed_work.put_off(owed, until=NOW, error=None)


#: What a caller does after its try.
either_end = pytest.mark.parametrize(
    "end", [lambda owed_work, owed: owed_work.done(owed), _put_off], ids=["done", "put off"]
)


def _seen(owed: Owed) -> tuple[Any, ...]:
    return owed.since, owed.next_try, owed.tries, owed.error, owed.resent


def test_owed_work_is_pending_at_once(owed_work: OwedWork) -> None:
    owed_work.owe(WORK, now=NOW, error="busy")
    owed_work.owe(OTHER, now=NOW, error="refused")

    pending = _pending(owed_work)

    assert {work: owed.error for work, owed in pending.items()} == {WORK: "busy", OTHER: "refused"}
    assert _seen(pending[WORK]) == (NOW, NOW, 0, "busy", False)


def test_the_earliest_work_comes_first(owed_work: OwedWork) -> None:
    works = [Work(kind=Kind.ADVANCE, tenant=TENANT, name=f"group {number}") for number in range(12)]
    for number, work in enumerate(works):
        owed_work.owe(work, now=NOW + number * SECOND, error="busy")

    assert list(_pending(owed_work, before=LATER)) == works


@pytest.mark.parametrize("count", [1, 3, 8])
def test_each_work_is_in_one_part(owed_work: OwedWork, count: int) -> None:
    works = {replace(WORK, name=str(number)) for number in range(20)}
    for work in works:
        owed_work.owe(work, now=NOW, error="busy")

    parts = [[owed.work for owed in owed_work.pending(before=NOW, part=Part(number, count))] for number in range(count)]

    assert sorted(repr(work) for part in parts for work in part) == sorted(map(repr, works))
    assert len([part for part in parts if part]) > 1 or count == 1


def test_the_first_failure_stays(owed_work: OwedWork) -> None:
    owed_work.owe(WORK, now=NOW, error="busy")
    owed_work.owe(WORK, now=LATER, error="still busy")

    assert _seen(_pending(owed_work)[WORK]) == (NOW, NOW, 0, "still busy", False)


def test_work_that_was_put_off_is_not_pending_before_its_time(owed_work: OwedWork) -> None:
    owed_work.owe(WORK, now=NOW, error="busy")
    owed_work.put_off(_pending(owed_work)[WORK], until=LATER, error="still busy")

    assert _pending(owed_work, LATER - SECOND) == {}
    assert _seen(_pending(owed_work, LATER)[WORK]) == (NOW, LATER, 1, "still busy", False)


def test_a_message_that_was_sent_again_is_remembered_until_the_next_failure(owed_work: OwedWork) -> None:
    owed_work.owe(OTHER, now=NOW, error="refused")
    owed_work.put_off(_pending(owed_work)[OTHER], until=LATER, error=None)
    assert _seen(_pending(owed_work, LATER)[OTHER]) == (NOW, LATER, 1, "refused", True)

    owed_work.owe(OTHER, now=NOW + SECOND, error="refused again")

    # The pause stays, or a job that always fails would be tried all the time.
    assert _seen(_pending(owed_work, LATER)[OTHER]) == (NOW, LATER, 1, "refused again", False)


def test_work_that_is_done_is_gone(owed_work: OwedWork) -> None:
    owed_work.owe(WORK, now=NOW, error="busy")
    owed_work.done(_pending(owed_work)[WORK])

    assert _pending(owed_work) == {}


@either_end
def test_work_that_is_owed_once_more_stays(owed_work: OwedWork, end: End) -> None:
    owed_work.owe(WORK, now=NOW, error="busy")
    before = _pending(owed_work)[WORK]
    owed_work.owe(WORK, now=NOW, error="busy again")

    end(owed_work, before)

    assert _seen(_pending(owed_work)[WORK]) == (NOW, NOW, 0, "busy again", False)


@either_end
def test_work_that_another_caller_put_off_stays_as_that_caller_left_it(owed_work: OwedWork, end: End) -> None:
    owed_work.owe(WORK, now=NOW, error="busy")
    before = _pending(owed_work)[WORK]
    owed_work.put_off(before, until=LATER, error="still busy")

    end(owed_work, before)

    assert _seen(_pending(owed_work, LATER)[WORK]) == (NOW, LATER, 1, "still busy", False)


@either_end
def test_work_that_is_gone_is_not_stored_again(owed_work: OwedWork, end: End) -> None:
    owed_work.owe(WORK, now=NOW, error="busy")
    before = _pending(owed_work)[WORK]
    owed_work.done(before)

    end(owed_work, before)

    assert _pending(owed_work) == {}
    owed_work.owe(WORK, now=LATER, error="busy again")
    assert _seen(_pending(owed_work, LATER)[WORK]) == (LATER, LATER, 0, "busy again", False)


@either_end
def test_a_failure_counts_though_the_sdk_sends_an_older_one_again(table: Table, client: FaultyClient, end: End) -> None:
    owed_work = DynamoOwedWork(table.client, table=table.name)
    read: list[Owed] = []

    def meanwhile(applied: bool) -> None:
        # A caller reads the work, and publish fails once more, before the SDK sends the first call again.
        if applied:
            read.append(_pending(owed_work)[WORK])
            owed_work.owe(WORK, now=NOW, error="busy again")

    client.watch = meanwhile
    client.faults = [Fault.SENT_TWICE]
    DynamoOwedWork(client, table=table.name).owe(WORK, now=NOW, error="busy")  # type: ignore[arg-type]

    end(owed_work, read[0])

    assert _seen(_pending(owed_work)[WORK]) == (NOW, NOW, 0, "busy", False)


def test_work_of_a_newer_version_is_left_to_it(table: Table) -> None:
    item: Any = {
        "pk": {"S": '!owed#["sing","tenant","name"]'},
        "attention": {"S": "owed#0"},
        "attention_at": {"N": "1"},
    }
    table.client.put_item(TableName=table.name, Item=item)

    assert _pending(DynamoOwedWork(table.client, table=table.name)) == {}
