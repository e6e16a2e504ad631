"""`clicks.rollup`: the statistics stay the same before, during and after it, also after crashes."""

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any, Final

import pytest

from functions.jobs import clicks_rollup as rollup_module
from shortener import composition as shortener
from shortener.click import Click
from shortener.click_rollup import SHARDS_KEPT, last_closed_day
from shortener.click_table import RECORDS_KEPT, SHARDS
from shortener.click_writes import ClickWrites
from shortener.names import CLICK_KEY, CLICK_SORT_KEY, TTL_ATTRIBUTE
from shortener.visitor import Visitor
from tests.integration.shortener.conftest import World, set_now
from tests.support.faulty_client import KilledError
from tidemill import composition
from tidemill.application.attempt.attempt_report import Ending
from tidemill.domain.job import Job
from tidemill.dynamodb.attempt.effects import entries
from tidemill.system import clock

NOON: Final = datetime(2045, 3, 4, 12, tzinfo=UTC)
DAY: Final = timedelta(days=1)
HOUR: Final = timedelta(hours=1)
VISITOR: Final = Visitor(country="SE", browser="Firefox", system="Linux", device="Other", bot=False)
LOOK_BACK: Final = 5 * DAY
CODES: Final = ("spring", "summer")


class Time:
    """The current time, which a test sets."""

    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def time(world: World, monkeypatch: pytest.MonkeyPatch) -> Time:
    time = Time()
    set_now(monkeypatch, time)
    # The first rollup starts this many days ago. A short time makes these tests fast.
    monkeypatch.setattr("shortener.click_rollup.RECORDS_KEPT", LOOK_BACK)
    for code in CODES:
        world.post_link({"url": "https://example.com/a", "code": code})
    return time


class Interrupted:
    """A DynamoDB client that dies at one of its calls, counted from 0, before it or after it."""

    def __init__(self, client: Any, *, at: int, after: bool) -> None:
        self._client = client
        self._at = at
        self._after = after
        self.calls = 0

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._client, name)
        if name == "get_paginator":
            # `paginate` below counts each page as one call of `query`.
            return lambda _operation: self
        return lambda **request: self._call(lambda: method(**request))

    def paginate(self, **request: Any) -> Iterator[Any]:
        yield self._call(lambda: self._client.query(**request))

    def _call(self, method: Callable[[], Any]) -> Any:
        self.calls += 1
        if self.calls == self._at + 1 and not self._after:
            raise KilledError
        answer = method()
        if self.calls == self._at + 1:
            raise KilledError
        return answer


def visit(world: World, *, times: int = 3) -> None:
    for code in CODES:
        for _ in range(times):
            world.visit(code, x_forwarded_for="8.8.8.8")
    world.run_all()


def count(world: World, *, job_ids: Sequence[str]) -> None:
    """Count one click of each link for each id, without the redirect and without a job."""
    for code, job_id in product(CODES, job_ids):
        counting = ClickWrites(shortener.clicks(), first_job_id=job_id, now=clock.now())
        writes = counting.of(Click(code=code), VISITOR, job_id=job_id, at=clock.now())
        world.dynamodb.transact_write_items(TransactItems=entries(writes))  # type: ignore[arg-type]  # plain mappings


def stats(world: World) -> list[Any]:
    return [world.stats(code).json() for code in CODES]


def rolled_up(world: World) -> Job:
    """Submit a rollup and run it until it ends, over as many invocations as necessary."""
    job = world.submit("clicks.rollup")
    while not world.job(job).state.terminal:
        report = world.run(world.job(job))
        assert report.ending in {Ending.SUCCEEDED, Ending.CONTINUED}, report
    return world.job(job)


def kinds(world: World) -> set[str]:
    """The kinds of the items that hold counters and do not expire."""
    return {
        item[CLICK_SORT_KEY]["S"].split("#")[0]
        for item in world.items(world.clicks_table)
        if item[CLICK_KEY]["S"] in CODES and TTL_ATTRIBUTE not in item
    }


def test_a_day_is_closed_an_hour_after_its_end() -> None:
    assert str(last_closed_day(datetime(2045, 3, 4, 0, 59, 59, tzinfo=UTC))) == "2045-03-02"
    assert str(last_closed_day(datetime(2045, 3, 4, 1, 0, 0, tzinfo=UTC))) == "2045-03-03"


def test_the_counters_of_a_closed_day_move_to_the_total_and_the_stats_stay(world: World, time: Time) -> None:
    visit(world)
    before = stats(world)
    assert before[0]["days"] == {"2045-03-04": 3}
    assert kinds(world) == {"count"}
    time.now += DAY

    job = rolled_up(world)

    assert stats(world) == before
    assert kinds(world) == {"total"}
    assert job.result == f'{{"through":"2045-03-04","shards":{len(shards(world))}}}'


def shards(world: World) -> list[Any]:
    return [item for item in world.items(world.clicks_table) if item[CLICK_SORT_KEY]["S"].startswith("count#")]


def test_clicks_of_the_current_day_stay_in_their_shards_and_are_counted(world: World, time: Time) -> None:
    visit(world)
    time.now += DAY
    visit(world, times=2)
    rolled_up(world)
    assert kinds(world) == {"count", "total"}
    assert stats(world)[0]["days"] == {"2045-03-04": 3, "2045-03-05": 2}
    assert stats(world)[0]["clicks"] == 5


def test_a_click_that_is_counted_days_late_counts_for_its_own_day(world: World, time: Time) -> None:
    for code in CODES:
        world.visit(code)
    time.now += 3 * DAY
    rolled_up(world)
    world.run_all()
    assert stats(world)[0]["days"] == {"2045-03-04": 1}
    time.now += DAY
    rolled_up(world)
    assert kinds(world) == {"total"}
    assert stats(world)[0]["days"] == {"2045-03-04": 1}


def test_later_days_are_added_to_the_totals(world: World, time: Time) -> None:
    for _ in range(3):
        visit(world)
        time.now += DAY
        rolled_up(world)
    assert stats(world)[1]["clicks"] == 9
    assert stats(world)[1]["countries"] == {"US": 9}


def test_a_second_rollup_of_the_same_day_finds_nothing_to_do(world: World, time: Time) -> None:
    visit(world)
    time.now += DAY
    rolled_up(world)
    before = world.items(world.clicks_table)
    assert rolled_up(world).result == '{"through":"2045-03-04","shards":0}'
    assert world.items(world.clicks_table) == before


def test_shards_expire_a_day_after_they_were_added_and_the_stats_stay(world: World, time: Time) -> None:
    visit(world)
    time.now += DAY
    rolled_up(world)
    expiries = {int(item[TTL_ATTRIBUTE]["N"]) for item in shards(world)}
    assert expiries == {int((time.now + SHARDS_KEPT).timestamp())}
    # Delete them, as DynamoDB does after their expiry.
    for item in shards(world):
        key = {name: item[name] for name in (CLICK_KEY, CLICK_SORT_KEY)}
        world.dynamodb.delete_item(TableName=world.clicks_table, Key=key)
    assert stats(world)[0]["clicks"] == 3


@pytest.mark.slow
def test_a_rollup_that_did_not_run_for_weeks_catches_up(
    world: World, time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shortener.click_rollup.RECORDS_KEPT", RECORDS_KEPT)
    for _ in range(3):
        visit(world)
        time.now += 20 * DAY
    rolled_up(world)
    assert kinds(world) == {"total"}
    assert stats(world)[0]["clicks"] == 9


def test_a_reader_of_the_previous_total_still_finds_the_shards(world: World, time: Time) -> None:
    visit(world)
    time.now += DAY
    clicks = shortener.clicks()
    total = clicks.total("spring")
    rolled_up(world)
    assert sum(shard["clicks"] for shard in clicks.shards("spring", after=total.through)) == 3


def test_two_concurrent_rollups_add_each_shard_once(world: World, time: Time, monkeypatch: pytest.MonkeyPatch) -> None:
    visit(world)
    before = stats(world)
    time.now += DAY
    rollup = shortener.rollup()
    put = world.client.put_item
    with monkeypatch.context() as meanwhile:

        def after_the_other(**request: Any) -> Any:
            meanwhile.undo()
            rolled_up(world)
            return put(**request)

        meanwhile.setattr(rollup._client, "put_item", after_the_other, raising=False)
        rollup.add("spring", through=last_closed_day(time.now))
    assert stats(world) == before


@pytest.mark.slow
def test_it_continues_in_another_invocation_before_its_deadline(
    world: World, time: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    visit(world)
    before = stats(world)
    time.now += DAY
    job = world.submit("clicks.rollup")
    with monkeypatch.context() as for_now:
        for_now.setattr(rollup_module, "LONGEST_STEP", HOUR)
        for _ in range(LOOK_BACK.days * SHARDS):
            assert world.run(world.job(job)).ending is Ending.CONTINUED
            assert stats(world) == before
    assert world.run(world.job(job)).ending is Ending.SUCCEEDED
    assert world.job(job).hops == LOOK_BACK.days * SHARDS
    assert world.job(job).progress.total == LOOK_BACK.days * SHARDS
    assert kinds(world) == {"total"}


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True], ids=["before the call", "after the call"])
def test_killed_at_any_call_the_stats_stay_exact_and_the_next_run_finishes_the_work(
    world: World, time: Time, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    monkeypatch.setattr("shortener.click_table.SHARDS", 2)
    monkeypatch.setattr(rollup_module, "SHARDS", 2)
    monkeypatch.setattr(rollup_module, "SAVED_EVERY", timedelta(0))
    rolled_up(world)  # records the progress, so that the next rollup has one day to add
    kill_at = 0
    killed = True
    while killed:
        count(world, job_ids=(f"{kill_at}-a", f"{kill_at}-b", f"{kill_at}-c"))
        expected = stats(world)
        time.now += DAY
        job = world.submit("clicks.rollup")
        client = Interrupted(world.client, at=kill_at, after=after)
        killed = not _ended(world, job, client, monkeypatch)
        assert stats(world) == expected, f"killed at call {kill_at}"
        time.now += HOUR  # its lease has expired
        rolled_up(world)
        assert stats(world) == expected, f"after a kill at call {kill_at}"
        assert kinds(world) == {"total"}, f"after a kill at call {kill_at}"
        kill_at += 1
        time.now += DAY - HOUR
    assert kill_at > 20


def _ended(world: World, job: Job, client: Interrupted, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Claim, run and settle the job with this client. False if the client killed it."""
    attempt = world.attempt(job)
    assert attempt.claim(remaining=timedelta(seconds=30))
    with monkeypatch.context() as for_now:
        for each in (shortener.rollup(), shortener.clicks(), composition.parts().store):
            for_now.setattr(each, "_client", client)
        try:
            outcome = attempt.run()
        except Exception:  # noqa: BLE001 - the kill, after which the attempt reports no result
            return False
        try:
            attempt.finish(outcome)
        except KilledError:
            return False
    return True
