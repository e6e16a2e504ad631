"""The limits against a model, and the cost of waiting for them."""

import heapq
import re
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.builders import LEASE, MILLISECOND, NOW, SECOND, fresh_token
from tests.support.job_tables import Table, table_on_moto
from tidemill.application.ports import LimitSlot
from tidemill.domain.limits import Limit, Rate
from tidemill.dynamodb.limits import LONGEST_LINE, DynamoLimits

MICROSECOND = timedelta(microseconds=1)
COUNTS = st.integers(1, 4)
RATES = st.builds(Rate, count=COUNTS, period=st.sampled_from([SECOND, 7 * SECOND, timedelta(minutes=1)]))
LIMITS = st.one_of(
    st.builds(Limit, concurrency=COUNTS), st.builds(Limit, rate=RATES), st.builds(Limit, concurrency=COUNTS, rate=RATES)
)
#: Enter, or leave the slot that entered so many before the last; and how long to wait before.
STEPS = st.lists(
    st.tuples(st.one_of(st.none(), st.integers(0, 5)), st.sampled_from([0, 1, 333, 1_000, 7_000, 31_000])), max_size=40
)


@dataclass
class Model:
    """Who is in, and when each entered."""

    limit: Limit
    inside: dict[str, datetime] = field(default_factory=dict)
    entries: list[datetime] = field(default_factory=list)

    def has_room(self, now: datetime) -> bool:
        live = sum(until > now for until in self.inside.values())
        return (self.limit.concurrency is None or live < self.limit.concurrency) and (
            self.limit.rate is None or self._tokens(self.limit.rate, now) >= 1
        )

    def _tokens(self, rate: Rate, now: datetime) -> Fraction:
        """The same rule in its usual form: a bucket of `count` tokens, to which each interval adds one."""
        tokens, at = Fraction(rate.count), NOW
        for entry in self.entries:
            tokens = min(Fraction(rate.count), tokens + Fraction((entry - at) // MICROSECOND, interval_of(rate))) - 1
            at = entry
        return min(Fraction(rate.count), tokens + Fraction((now - at) // MICROSECOND, interval_of(rate)))


def interval_of(rate: Rate) -> int:
    """In whole microseconds, rounded up."""
    return -(-(rate.period // MICROSECOND) // rate.count)


@settings(max_examples=60, deadline=None)
@given(limit=LIMITS, steps=STEPS)
def test_a_slot_is_given_exactly_when_the_limits_leave_room(limit: Limit, steps: list[tuple[int | None, int]]) -> None:
    with table_on_moto() as table:
        limits, model, now, slots = limits_on(table), Model(limit), NOW, []
        for leaves, wait in steps:
            now += wait * MILLISECOND
            if leaves is None:
                slot = LimitSlot(limit_key="a", limit=limit, token=fresh_token(), until=now + LEASE)
                room = model.has_room(now)
                wait_until = limits.acquire(slot, now=now)
                assert (wait_until is None) == room
                assert wait_until is None or wait_until > now
                if room:
                    slots.append(slot)
                    model.inside[slot.token] = slot.until
                    model.entries.append(now)
            elif leaves < len(slots):
                limits.release(slots[-1 - leaves])
                model.inside.pop(slots[-1 - leaves].token, None)
        if limit.rate:
            for start in model.entries:
                within = sum(start <= entry < start + limit.rate.period for entry in model.entries)
                assert within <= 2 * limit.rate.count


def test_jobs_that_wait_for_a_rate_are_claimed_once_more_and_not_at_each_interval(table: Table) -> None:
    claims, finished = wait_out(limits_on(table), Limit(rate=Rate(count=2, period=10 * SECOND)), jobs=100)

    assert max(claims.values()) == 2
    assert finished == NOW + 98 * 5 * SECOND


def test_a_job_too_far_back_in_the_line_tries_again_and_is_not_forgotten(table: Table) -> None:
    claims, finished = wait_out(limits_on(table), Limit(rate=Rate(count=1, period=5 * 60 * SECOND)), jobs=60)

    assert finished <= NOW + timedelta(minutes=59 * 5) + 2 * LONGEST_LINE
    # Five hours of waiting; a job gets a time at most an hour ahead.
    assert max(claims.values()) <= 12


def test_the_example_of_the_page_about_limits_is_a_job_type() -> None:
    page = (Path(__file__).parents[3] / "docs" / "guides" / "limits.md").read_text()
    example = re.search(r"```python\n(.+?)```", page, re.DOTALL)
    assert example is not None
    found: dict[str, Any] = {}

    exec(example[1], found)

    job_type = found["sync"]
    assert job_type.limit == Limit(concurrency=2, rate=Rate(count=30, period=timedelta(minutes=1)))
    assert job_type.limit_key(job_type.parse({"shop": "a shop"})) == "a shop"


def limits_on(table: Table) -> DynamoLimits:
    return DynamoLimits(table.client, table=table.name, draw=lambda: 0.5)


def wait_out(limits: DynamoLimits, limit: Limit, *, jobs: int) -> tuple[Counter[int], datetime]:
    """How often each of these jobs was claimed until it had run, and when the last one did."""
    claims: Counter[int] = Counter()
    waiting = [(NOW, job) for job in range(jobs)]
    now = NOW
    while waiting:
        now, job = heapq.heappop(waiting)
        claims[job] += 1
        slot = LimitSlot(limit_key="a", limit=limit, token=fresh_token(), until=now + LEASE)
        if wait_until := limits.acquire(slot, now=now):
            heapq.heappush(waiting, (wait_until, job))
    return claims, now
