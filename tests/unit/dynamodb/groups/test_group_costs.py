"""The cost of groups: counted item writes and reads for each step of a job."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.support.builders import NOW, a_job
from tests.support.group_jobs import advance, end, enter, redrive
from tests.support.job_tables import Table
from tidemill.domain.states import State
from tidemill.dynamodb.job_store import DynamoJobStore

#: Items written, of those in transactions, and reads.
Cost = tuple[int, int, int]


class Meter:
    """Counts the calls of a client."""

    def __init__(self) -> None:
        self.written = self.together = self.read = 0

    def count(self, params: Any, model: Any, **_rest: Any) -> None:
        match model.name:
            case "TransactWriteItems":
                self.written += len(params["TransactItems"])
                self.together += len(params["TransactItems"])
            case "PutItem" | "UpdateItem" | "DeleteItem":
                self.written += 1
            case "GetItem":
                self.read += 1
            case other:
                raise AssertionError(other)


@pytest.fixture
def cost(table: Table) -> Iterator[Callable[[Callable[[], object]], Cost]]:
    meter = Meter()

    def cost(step: Callable[[], object]) -> Cost:
        before = (meter.written, meter.together, meter.read)
        step()
        written, together, read = (
            now - then for now, then in zip((meter.written, meter.together, meter.read), before, strict=True)
        )
        return written, together, read

    table.client.meta.events.register("provide-client-params.dynamodb", meter.count)
    yield cost
    table.client.meta.events.unregister("provide-client-params.dynamodb", meter.count)


Price = Callable[[Callable[[], object]], Cost]


def test_a_job_without_a_group_has_no_group_costs(store: DynamoJobStore, cost: Price) -> None:
    assert cost(lambda: store.insert_if_absent(a_job())) == (1, 0, 0)


def test_the_first_job_of_a_group_is_submitted_with_the_head(store: DynamoJobStore, cost: Price) -> None:
    assert cost(lambda: enter(store)) == (2, 2, 2)


def test_the_first_job_that_waits_also_writes_the_head_and_the_tail(store: DynamoJobStore, cost: Price) -> None:
    enter(store)

    assert cost(lambda: enter(store)) == (4, 4, 2)


def test_every_other_job_that_waits_is_submitted_with_its_position_and_the_tail(
    store: DynamoJobStore, cost: Price
) -> None:
    enter(store, 2)

    assert cost(lambda: enter(store)) == (3, 3, 1)


def test_a_turn_writes_the_job_and_the_head_and_deletes_the_position(store: DynamoJobStore, cost: Price) -> None:
    head, _ = enter(store, 2)
    end(store, head)

    assert cost(lambda: advance(store)) == (3, 3, 4)


def test_the_only_job_leaves_an_idle_head(store: DynamoJobStore, cost: Price) -> None:
    (head,) = enter(store)
    end(store, head)

    assert cost(lambda: advance(store)) == (1, 1, 4)


def test_the_last_job_also_deletes_the_tail(store: DynamoJobStore, cost: Price) -> None:
    head, last = enter(store, 2)
    end(store, head)
    advance(store)
    end(store, last)

    assert cost(lambda: advance(store)) == (2, 2, 4)


def test_an_advance_of_an_idle_group_writes_nothing(store: DynamoJobStore, cost: Price) -> None:
    (head,) = enter(store)
    end(store, head)
    advance(store)

    assert cost(lambda: advance(store)) == (0, 0, 1)


def test_an_advance_while_the_head_lives_writes_nothing(store: DynamoJobStore, cost: Price) -> None:
    enter(store, 2)

    assert cost(lambda: advance(store)) == (0, 0, 2)


def test_positions_of_cancelled_jobs_are_deleted_with_the_next_turn(store: DynamoJobStore, cost: Price) -> None:
    head, *waiting, _ = enter(store, 5)
    for job in waiting:
        store.cancel(job, now=NOW)
    end(store, head)

    assert cost(lambda: advance(store)) == (3 + len(waiting), 3 + len(waiting), 4 + 2 * len(waiting))


def test_a_redrive_to_the_tail_writes_the_tail_and_a_position(store: DynamoJobStore, cost: Price) -> None:
    head, _ = enter(store, 2)
    dead = end(store, head, State.DEAD)
    assert cost(lambda: redrive(store, dead)) == (2, 2, 2)

    dead = end(store, dead, State.DEAD)
    advance(store)
    assert cost(lambda: redrive(store, dead)) == (3, 3, 3)
