"""The largest writes of a limit item are expressions that DynamoDB accepts. The tables of tests accept larger ones."""

import re
from datetime import timedelta

import pytest

from tests.support.builders import NOW, SECOND, a_job, fresh_token
from tests.support.parked_jobs import LINE
from tidemill.application.ports import LimitSlot
from tidemill.domain.limits.adaptive_limit import LARGEST_CONCURRENCY
from tidemill.domain.limits.limit_state import (
    MOST_AT_ONCE,
    RESERVED,
    LimitState,
    Turn,
    reservation_name,
    run_name,
)
from tidemill.domain.limits.limits import Limit, Rate
from tidemill.dynamodb.limits import limit_item
from tidemill.dynamodb.update_requests import Request

#: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Constraints.html
LONGEST_EXPRESSION = 4096
MOST_OPERATORS = 300
_OPERATOR = re.compile(r"<=|<>|=|<|>|\bAND\b|\bOR\b|\+|-|attribute_exists|attribute_not_exists|size")

LARGEST = Limit(concurrency=LARGEST_CONCURRENCY, rate=Rate(count=100, period=SECOND))


def names(number: int) -> list[str]:
    """Return the names of runs and of reservations."""
    return [*(run_name(f"run {n}") for n in range(number // 2)), *reservations(number - number // 2, "old")]


def reservations(number: int, tenant: str) -> list[str]:
    return [reservation_name(tenant, str(n)) for n in range(number)]


@pytest.fixture
def all_over() -> LimitState:
    """Every worker and every released job was lost."""
    held = dict.fromkeys(names(LARGEST_CONCURRENCY), NOW - SECOND)
    return LimitState(limit=LARGEST, held=held, arrival=NOW + SECOND, promised=NOW, marked=True, last_at=NOW)


def assert_accepted(request: Request | None) -> None:
    assert request is not None
    for name in ("UpdateExpression", "ConditionExpression"):
        assert len(request[name]) <= LONGEST_EXPRESSION
        assert len(_OPERATOR.findall(request[name])) <= MOST_OPERATORS


def test_a_release_after_all_workers_were_lost(all_over: LimitState) -> None:
    turns = [Turn(reservation=name, due=NOW + RESERVED) for name in reservations(MOST_AT_ONCE, "new")]

    assert len(all_over.turns(NOW + timedelta(hours=1))) == MOST_AT_ONCE
    assert_accepted(limit_item.reserve(LINE, all_over, turns, leaving=run_name("leaving"), now=NOW))


def test_an_entry_after_all_workers_were_lost(all_over: LimitState) -> None:
    job = a_job()
    slot = LimitSlot(
        line=LINE, limit=LARGEST, token=fresh_token(), until=NOW + SECOND, job=(job.tenant, job.id), released=True
    )

    assert_accepted(limit_item.enter(slot, all_over, now=NOW))
