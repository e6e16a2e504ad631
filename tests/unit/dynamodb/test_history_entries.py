"""The size of a document, and how its history is cut by it."""

from typing import Any

import pytest

from tests.support.builders import A_STEP, NOW, RETENTION, SECOND, a_job, with_changes
from tidemill.aws.clients import Item
from tidemill.domain.attempt.outcomes import Settlement
from tidemill.domain.history import LEAST_KEPT_AFTER_FAILURE, Transition, Why
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.dynamodb.attempt import settle_requests
from tidemill.dynamodb.history_entries import kept, size_bytes, transitions
from tidemill.dynamodb.indexes import NOT_LISTED


@pytest.mark.parametrize(
    ("value", "size"),
    [
        ({"S": "aé"}, 3),
        ({"N": "12345"}, 4),
        ({"N": "1200"}, 2),
        ({"BOOL": True}, 1),
        ({"L": []}, 3),
        ({"L": [{"S": "ab"}, {"N": "1"}]}, 3 + (1 + 2) + (1 + 2)),
        ({"M": {"by": {"S": "ada"}}}, 3 + (1 + 2 + 3)),
    ],
)
def test_a_value_has_the_size_of_the_documentation(value: dict[str, Any], size: int) -> None:
    # https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
    assert size_bytes({"name": value}) == len("name") + size


ENTRIES = [
    Transition(at=NOW + number * SECOND, state=State.RUNNING, cause=Why.CLAIMED, worker="w/1") for number in range(60)
]
ONE_BYTES = 1 + len(f"{round(NOW.timestamp() * 1000)} running - w/1")


def taken(count: int) -> int:
    """The size of a history of so many of these entries."""
    return len("history") + 3 + count * ONE_BYTES


def filled(room: int, **attributes: Any) -> Item:
    """A document with so much room for its history, until the next run of the job takes another write unit."""
    attributes |= {"fill": {"S": ""}}
    attributes["fill"] = {"S": "x" * (2 * 1024 - 200 - room - size_bytes(attributes))}
    return attributes


@pytest.mark.parametrize(
    ("count", "room", "length"),
    [
        (8, taken(8), 8),
        (9, taken(9), 9),
        (9, taken(9) - 1, 8),
        (15, taken(15), 15),
        (15, taken(15) - 1, 14),
        (15, taken(12), 12),
        (15, 0, 4),
        (60, 0, 4),
        (5, 0, 4),
        (3, 0, 3),
    ],
)
def test_the_oldest_entries_give_way_before_the_next_run_takes_another_write_unit(
    count: int, room: int, length: int
) -> None:
    assert kept(ENTRIES[:count], filled(room)) == tuple(ENTRIES[:count][-length:])


@pytest.mark.parametrize("name", ["errors", "redrives"])
def test_a_document_with_a_failure_keeps_more(name: str) -> None:
    failed = {name: {"L": [{"S": "x"}]}}

    assert kept(ENTRIES, filled(0, **failed)) == tuple(ENTRIES[-LEAST_KEPT_AFTER_FAILURE:])
    assert kept(ENTRIES[:30], filled(taken(20), **failed)) == tuple(ENTRIES[10:30])


def test_a_history_has_at_most_32_entries() -> None:
    short = [Transition(at=NOW, state=State.DEAD, cause=State.DEAD) for _ in range(40)]

    assert kept(short, filled(800)) == tuple(short[-32:])
    assert kept(short[:32], filled(800)) == tuple(short[:32])


def entries_after(settlement: Settlement, **changes: Any) -> int:
    """How many entries a job has after its settle."""
    running = a_job(state=State.RUNNING, owner="t", attempt=1, history=tuple(ENTRIES[:30]))
    request = settle_requests.settle(
        with_changes(running, **changes), settlement, now=NOW, retention=RETENTION, indexes=NOT_LISTED
    )
    return len(transitions(request["ExpressionAttributeValues"][":new_history"]))


def test_what_a_settle_writes_counts_in_the_size_of_the_document() -> None:
    lengths = [entries_after(Settlement(state=State.SUCCEEDED, result="x" * size)) for size in range(0, 1024, 8)]

    assert min(lengths) == 4
    assert max(lengths) > 15


def test_what_a_settle_removes_does_not_count() -> None:
    lengths = {
        entries_after(Settlement(state=State.SUCCEEDED), steps=(replace(A_STEP, result="x" * size),))
        for size in range(0, 1024, 8)
    }

    assert len(lengths) == 1
