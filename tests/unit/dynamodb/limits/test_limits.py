"""The limits against a model."""

import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.builders import LEASE, MILLISECOND, NOW, SECOND, TENANT, fresh_token
from tests.support.document_blocks import python_blocks
from tests.support.documented_job_types import GUIDES
from tests.support.faulty_client import FaultyClient
from tests.support.job_tables import Table, table_on_moto
from tidemill.application.ports import Entered, LimitSlot
from tidemill.domain.limits.limit_state import run_name, slack
from tidemill.domain.limits.limits import Limit, Rate
from tidemill.domain.waiting.waiting import Line
from tidemill.dynamodb.limits.limits import DynamoLimits

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
    """Who is in, and when each entered. Every job comes back after it waited, so a little early is soon enough."""

    limit: Limit
    inside: dict[str, datetime] = field(default_factory=dict)
    entries: list[datetime] = field(default_factory=list)

    def has_room(self, now: datetime) -> bool:
        live = sum(until > now for until in self.inside.values())
        return (self.limit.concurrency is None or live < self.limit.concurrency) and (
            self.limit.rate is None or self._tokens(self.limit.rate, now + slack(self.limit.rate)) >= 1
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


@settings(max_examples=30)
@given(limit=LIMITS, steps=STEPS)
def test_a_slot_is_given_exactly_when_the_limits_leave_room(limit: Limit, steps: list[tuple[int | None, int]]) -> None:
    with table_on_moto() as table:
        limits, model, now, slots = DynamoLimits(table.client, table=table.name), Model(limit), NOW, []
        for leaves, wait in steps:
            now += wait * MILLISECOND
            if leaves is None:
                token, line = fresh_token(), Line.for_limit("a")
                # It is a released job: nothing but the limit holds it back.
                slot = LimitSlot(
                    line=line, limit=limit, token=token, until=now + LEASE, job=(TENANT, token), released=True
                )
                room = model.has_room(now)
                answer = limits.acquire(slot, now=now)
                assert isinstance(answer, Entered) == room
                assert not isinstance(answer, datetime) or answer > now
                if room:
                    slots.append(slot)
                    model.inside[slot.token] = slot.until
                    model.entries.append(now)
            elif leaves < len(slots):
                leaving = slots[-1 - leaves]
                if limits.release(leaving):
                    limits.vacate(leaving.line, run_name(leaving.token))
                model.inside.pop(slots[-1 - leaves].token, None)
        if limit.rate:
            for start in model.entries:
                within = sum(start <= entry < start + limit.rate.period for entry in model.entries)
                assert within <= 2 * limit.rate.count


def test_the_example_of_the_page_about_limits_is_a_job_type() -> None:
    found: dict[str, Any] = {}

    exec(python_blocks(GUIDES / "limits.md")[0], found)

    job_type = found["sync"]
    assert job_type.limit == Limit(concurrency=2, rate=Rate(count=30, period=timedelta(minutes=1)))
    assert job_type.limit_key(job_type.parse(json.dumps({"shop": "a shop"}))) == "a shop"


def test_the_types_of_the_page_about_limits_share_one() -> None:
    found: dict[str, Any] = {}

    exec(python_blocks(GUIDES / "limits.md")[1], found)

    lines = {
        found[name].limit_line(found["Order"](account="a"), tenant="t", lane="bulk") for name in ("charge", "refund")
    }
    assert {line.key for line in lines} == {'["limit:payments", "a", {"lane": "bulk"}]'}


def test_a_run_that_finds_a_free_slot_costs_one_write(client: FaultyClient, table: Table) -> None:
    limits, line = DynamoLimits(client, table=table.name), Line.for_limit("a")  # type: ignore[arg-type]  # a proxy
    writes: list[bool] = []
    client.watch = writes.append
    for _ in range(2):
        writes.clear()
        slot = LimitSlot(
            line=line,
            limit=Limit(concurrency=2),
            token=fresh_token(),
            until=NOW + LEASE,
            job=(TENANT, "a"),
            released=False,
        )
        assert isinstance(limits.acquire(slot, now=NOW), Entered)
    # The first run makes the item. It is refused once, since it expects one.
    assert writes == [False, True]
