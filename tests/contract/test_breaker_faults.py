"""Breakers while the table does not respond: a guess lets one job call, and releases no line."""

from datetime import timedelta

import pytest

from tests.support.builders import NOW, stored
from tests.support.failing_downstream import Downstream
from tests.support.faulty_client import FaultyClient
from tests.support.job_tables import Table
from tests.support.single_job import Clock
from tidemill import StoreUnavailableError
from tidemill.application.attempt.attempt_report import Ending
from tidemill.application.ports import WHOLE
from tidemill.application.waiting.release import Released
from tidemill.domain.breakers.breaker import HEARD_WITHIN, Breaker, BreakerPolicy, BreakerState, Callers
from tidemill.domain.states import State
from tidemill.domain.waiting.waiting import Line
from tidemill.dynamodb.breakers.breaker_item import DynamoBreakers
from tidemill.dynamodb.job_store import DynamoJobStore
from tidemill.dynamodb.limits import limit_item
from tidemill.dynamodb.limits.limits import DynamoLimits


@pytest.fixture
def downstream(
    client: FaultyClient, table: Table, store: DynamoJobStore, limits: DynamoLimits, clock: Clock
) -> Downstream:
    return Downstream(client, table, store, limits, clock)


class Out(DynamoBreakers):
    """The table responds to no call."""

    def __init__(self) -> None:
        super().__init__(None, table="")  # type: ignore[arg-type]  # no call uses it

    def read(self, _name: str, *, consistent: bool = False) -> Breaker:
        raise StoreUnavailableError(f"consistent={consistent}")

    def move(self, _seen: Breaker, after: Breaker) -> tuple[bool, Breaker]:
        raise StoreUnavailableError(str(after))


class Unmoved(DynamoBreakers):
    """Counts, and does not get as far as to move a breaker."""

    def __init__(self, stored: DynamoBreakers) -> None:
        super().__init__(stored._client, table=stored._table)

    def move(self, _seen: Breaker, after: Breaker) -> tuple[bool, Breaker]:
        raise StoreUnavailableError(str(after))


def test_a_breaker_that_was_not_opened_at_its_threshold_is_opened_by_the_next_run(
    downstream: Downstream, store: DynamoJobStore
) -> None:
    downstream.breakers._store = Unmoved(downstream.stored)
    downstream.fail_twice()
    assert (downstream.breaker.closed, downstream.breaker.failures, downstream.calls) == (True, 2, 2)
    downstream.breakers._store = downstream.stored
    downstream.clock.now += HEARD_WITHIN

    job = downstream.submit()
    assert downstream.run(job).ending is Ending.PARKED
    assert downstream.breaker.state is BreakerState.OPEN
    assert (downstream.calls, stored(store, job).attempt) == (2, 0)


def test_a_run_goes_on_if_it_cannot_open_it_either(downstream: Downstream) -> None:
    downstream.breakers._store = Unmoved(downstream.stored)
    downstream.fail_twice()
    downstream.error = None

    assert downstream.run(downstream.submit()).ending is Ending.SUCCEEDED


def test_failures_of_a_window_that_is_over_open_nothing(downstream: Downstream) -> None:
    downstream.breakers._store = Unmoved(downstream.stored)
    downstream.fail_twice()
    downstream.breakers._store, downstream.error = downstream.stored, None
    downstream.clock.now += timedelta(seconds=10)

    assert downstream.run(downstream.submit()).ending is Ending.SUCCEEDED
    assert downstream.breaker.closed


@pytest.mark.parametrize("known", [True, False])
def test_wake_leaves_the_line_of_a_breaker_that_it_cannot_read(
    downstream: Downstream, store: DynamoJobStore, known: bool
) -> None:
    downstream.fail_twice()
    waiting = downstream.submit()
    downstream.run(waiting)
    downstream.clock.now += timedelta(minutes=1)
    if not known:
        downstream.breakers._known.clear()
    downstream.breakers._store = Out()

    woken = _woken(downstream)

    assert (woken.jobs, woken.left, woken.failed) == ((), 1, ())
    assert stored(store, waiting).state is State.PARKED


def test_wake_does_not_release_by_what_a_failed_read_left(downstream: Downstream, store: DynamoJobStore) -> None:
    downstream.fail_twice()
    waiting = downstream.submit()
    downstream.run(waiting)
    downstream.breakers._known.clear()
    downstream.breakers._store = Out()
    assert not downstream.breakers.blocks("payments"), "a worker goes on"
    downstream.breakers._store = downstream.stored

    assert _woken(downstream).jobs == ()
    assert stored(store, waiting).state is State.PARKED


def test_a_worker_that_cannot_read_it_goes_on(downstream: Downstream) -> None:
    downstream.breakers._store = Out()
    downstream.error = None

    assert downstream.run(downstream.submit()).ending is Ending.SUCCEEDED


def test_a_failure_is_tried_four_times_while_others_are_faster_and_then_not_counted(
    client: FaultyClient, table: Table
) -> None:
    mine, other = (DynamoBreakers(each, table=table.name) for each in (client, table.client))  # type: ignore[arg-type]
    policy, fresh = BreakerPolicy(name="payments"), Breaker(name="payments")
    writes: list[bool] = []

    def faster(done: bool) -> None:
        """The first write expects no window, and each later one what the one before it found."""
        if done:
            return
        writes.append(True)
        if len(writes) % 2:
            other.fail(fresh, policy, calls=1, call=f"other {len(writes)}", by=Callers(), error="503", now=NOW)
        else:
            key = limit_item.item_key(Line.for_breaker("payments"))
            table.client.delete_item(TableName=table.name, Key=key)

    client.watch = faster

    with pytest.raises(StoreUnavailableError, match="other workers write the item of the breaker payments"):
        mine.fail(fresh, policy, calls=1, call="mine", by=Callers(), error="503", now=NOW)

    assert len(writes) == 4


def _woken(downstream: Downstream) -> Released:
    return downstream.releaser.release_all(part=WHOLE, in_time=lambda: True, draw=lambda: 0.5)


@pytest.mark.parametrize(("afresh", "reads"), [(False, [False, True]), (True, [True])])
def test_a_breaker_that_is_older_than_known_is_read_consistently_and_then_believed(
    downstream: Downstream, table: Table, monkeypatch: pytest.MonkeyPatch, afresh: bool, reads: list[bool]
) -> None:
    """Its item was deleted, or comes from a backup."""
    downstream.fail_twice()
    seen, read = list[bool](), downstream.stored.read
    for item in table.client.scan(TableName=table.name)["Items"]:
        if "circuit" in item:
            table.client.delete_item(TableName=table.name, Key={"pk": item["pk"]})
    downstream.clock.now += timedelta(seconds=2)

    def counted(name: str, *, consistent: bool = False) -> Breaker:
        seen.append(consistent)
        return read(name, consistent=consistent)

    monkeypatch.setattr(downstream.stored, "read", counted)
    assert downstream.breakers.look("payments", afresh=afresh).closed
    assert seen == reads
