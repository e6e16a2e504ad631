"""The item of a breaker: what is written of a transition is read again, and failures of several workers add up."""

from typing import Any

import pytest

from tests.support.builders import NOW, SECOND, TENANT
from tests.support.faulty_client import Fault, FaultyClient
from tests.support.job_tables import Table
from tidemill.domain.breakers.breaker import Breaker, BreakerPolicy, BreakerState, Callers
from tidemill.domain.records import replace
from tidemill.dynamodb.breakers.breaker_item import DynamoBreakers

POLICY = BreakerPolicy(name="payments")
FRESH = Breaker(name="payments")
UNKNOWN = Callers()
ONE = Callers(frozenset({"worker a"}), frozenset({TENANT}))
OTHER = Callers(frozenset({"worker b"}), frozenset({"tenant b"}))
#: No field has its default.
OPEN = Breaker(
    name="payments",
    state=BreakerState.OPEN,
    since=NOW,
    outage_from=NOW - SECOND,
    failures=7,
    calls=9,
    window_from=NOW - 2 * SECOND,
    called_at=NOW + SECOND,
    probe=(TENANT, "probe"),
    probe_at=NOW + 2 * SECOND,
    probe_until=NOW + 3 * SECOND,
    failed_probe=(TENANT, "failed"),
    failed_probe_created=NOW - 3 * SECOND,
    probes=2,
    reopened=3,
    probe_interval=5 * SECOND,
    last_error="HTTP 503",
    version=1,
)


@pytest.fixture
def breakers(client: FaultyClient, table: Table) -> DynamoBreakers:
    return DynamoBreakers(client, table=table.name)  # type: ignore[arg-type]  # a proxy


def failed(
    breakers: DynamoBreakers, seen: Breaker, call: str, *, after: int = 0, calls: int = 1, by: Callers = UNKNOWN
) -> Breaker:
    return breakers.fail(seen, POLICY, calls=calls, call=call, by=by, error=f"HTTP {call}", now=NOW + after * SECOND)


def test_a_transition_is_read_as_it_was_written(breakers: DynamoBreakers) -> None:
    same = [name for name in Breaker.__struct_fields__ if getattr(OPEN, name) == getattr(FRESH, name)]
    assert same == ["name", "failing", "serving", "last_call"], "a field of its own shows that it is written"

    assert breakers.move(FRESH, OPEN) == (True, OPEN)
    assert breakers.read("payments", consistent=True) == OPEN

    closed = replace(FRESH, since=NOW + SECOND, last_error=OPEN.last_error, version=2)
    assert breakers.move(OPEN, closed) == (True, closed)
    assert breakers.read("payments") == closed


def test_a_read_pays_for_consistency_only_if_it_asks_for_it() -> None:
    asked: list[bool] = []

    class Client:
        def get_item(self, **request: Any) -> Any:
            asked.append(request["ConsistentRead"])
            return {}

    client: Any = Client()
    breakers = DynamoBreakers(client, table="jobs")

    assert [breakers.read("payments"), breakers.read("payments", consistent=True)] == [FRESH, FRESH]
    assert asked == [False, True]


def test_the_error_of_a_failed_probe_takes_the_place_of_the_one_before(breakers: DynamoBreakers) -> None:
    breakers.move(FRESH, OPEN)
    later = replace(OPEN, version=2, last_error="HTTP 500")

    assert breakers.move(OPEN, later) == (True, later)


def test_an_error_that_was_counted_since_the_read_stays(breakers: DynamoBreakers) -> None:
    """Another worker reports it while this one opens the breaker."""
    seen = failed(breakers, FRESH, "500")
    failed(breakers, seen, "503")

    moved, present = breakers.move(seen, replace(seen, state=BreakerState.OPEN, version=1))

    assert (moved, present.last_error) == (True, "HTTP 503")


def test_of_two_transitions_of_the_same_breaker_one_is_made(breakers: DynamoBreakers) -> None:
    breakers.move(FRESH, OPEN)
    for seen in (FRESH, OPEN):
        breakers.move(OPEN, replace(OPEN, version=2))
        assert breakers.move(seen, replace(OPEN, probe=None, version=seen.version + 1)) == (
            False,
            replace(OPEN, version=2),
        )


@pytest.mark.parametrize("seen", [FRESH, OPEN])
def test_a_transition_that_the_sdk_sends_twice_is_made(
    breakers: DynamoBreakers, client: FaultyClient, seen: Breaker
) -> None:
    if seen.version:
        breakers.move(FRESH, seen)
    client.faults = [Fault.SENT_TWICE]
    after = replace(OPEN, version=seen.version + 1, probe=None)

    assert breakers.move(seen, after) == (True, after)


def test_failures_of_one_window_add_up_though_a_worker_has_not_seen_it(breakers: DynamoBreakers) -> None:
    failed(breakers, FRESH, "a", calls=2)

    for call, seen in (("b", FRESH), ("c", breakers.read("payments", consistent=True))):
        failed(breakers, seen, call, after=1, calls=3)

    counted = breakers.read("payments", consistent=True)
    assert (counted.failures, counted.calls, counted.window_from) == (3, 8, NOW)
    assert (counted.last_call, counted.last_error) == ("c", "HTTP c")


@pytest.mark.parametrize(("after", "failures"), [(9, 2), (10, 1)])
def test_a_window_lasts_its_time(breakers: DynamoBreakers, after: int, failures: int) -> None:
    seen = failed(breakers, FRESH, "a")

    counted = failed(breakers, seen, "b", after=after)

    assert (counted.failures, counted.calls) == (failures, failures)
    assert counted.window_from == (NOW if failures == 2 else NOW + after * SECOND)


@pytest.mark.parametrize("twice", [False, True])
def test_a_window_tells_whose_calls_failed_and_who_was_served(
    breakers: DynamoBreakers, client: FaultyClient, twice: bool
) -> None:
    seen = failed(breakers, FRESH, "a", by=ONE)
    client.faults = [Fault.SENT_TWICE] * twice
    seen = breakers.contradict(seen, OTHER)
    assert (seen.failures, seen.failing, seen.serving) == (1, ONE, OTHER)

    seen = failed(breakers, seen, "b", after=1, by=OTHER)

    assert seen.failing == Callers(ONE.workers | OTHER.workers, ONE.tenants | OTHER.tenants)
    assert breakers.read("payments", consistent=True) == seen
    assert failed(breakers, seen, "c", after=2, by=Callers(frozenset({"third"}))).failing == seen.failing


def test_callers_of_an_earlier_window_are_forgotten(breakers: DynamoBreakers) -> None:
    seen = failed(breakers, FRESH, "a", by=ONE)
    breakers.contradict(seen, OTHER)

    later = failed(breakers, seen, "b", after=10, by=OTHER)

    assert (later.failing, later.serving) == (OTHER, UNKNOWN)
    assert breakers.contradict(seen, ONE) == later, "its successes are those of the window before"


def test_callers_are_unknown_in_a_window_that_a_transition_began(breakers: DynamoBreakers, table: Table) -> None:
    seen = failed(breakers, FRESH, "a", by=ONE)
    breakers.contradict(seen, OTHER)
    (item,) = table.client.scan(TableName=table.name)["Items"]
    item["window_from"] = {"N": str(int(item["window_from"]["N"]) + 10_000)}
    table.client.put_item(TableName=table.name, Item=item)

    seen = failed(breakers, seen, "b", after=11, by=OTHER)

    assert (seen.failures, seen.failing, seen.serving) == (2, UNKNOWN, UNKNOWN)
    assert breakers.contradict(seen, OTHER) == seen


def test_no_success_contradicts_an_open_breaker(breakers: DynamoBreakers) -> None:
    seen = failed(breakers, FRESH, "a", by=ONE)
    opened = replace(seen, state=BreakerState.OPEN, version=1)
    breakers.move(seen, opened)

    assert breakers.contradict(seen, OTHER) == opened


@pytest.mark.parametrize("first", [True, False])
def test_a_failure_that_the_sdk_sends_twice_counts_once(
    breakers: DynamoBreakers, client: FaultyClient, first: bool
) -> None:
    seen = FRESH if first else failed(breakers, FRESH, "a")
    client.faults = [Fault.SENT_TWICE]

    assert failed(breakers, seen, "b").failures == seen.failures + 1


@pytest.mark.parametrize("state", [BreakerState.OPEN, BreakerState.HALF_OPEN])
def test_a_failure_after_the_breaker_has_opened_does_not_count(breakers: DynamoBreakers, state: BreakerState) -> None:
    now = replace(OPEN, state=state)
    breakers.move(FRESH, now)

    assert failed(breakers, FRESH, "a") == now
    assert failed(breakers, replace(FRESH, window_from=NOW), "a") == now


def test_a_failure_after_the_breaker_has_closed_again_counts(breakers: DynamoBreakers) -> None:
    breakers.move(FRESH, OPEN)
    closed = replace(FRESH, since=NOW, last_error=OPEN.last_error, version=2)
    breakers.move(OPEN, closed)

    assert failed(breakers, closed, "a").failures == 1
    assert failed(breakers, breakers.read("payments", consistent=True), "b").failures == 2


def test_an_item_of_a_version_that_noted_no_failed_probe_is_read(breakers: DynamoBreakers, table: Table) -> None:
    breakers.move(FRESH, OPEN)
    (item,) = table.client.scan(TableName=table.name)["Items"]
    earlier = {name: value for name, value in item.items() if name not in {"failed_probe", "failed_probe_created"}}
    table.client.put_item(TableName=table.name, Item=earlier)

    found = breakers.read("payments", consistent=True)

    assert found == replace(OPEN, failed_probe=None, failed_probe_created=FRESH.failed_probe_created)
