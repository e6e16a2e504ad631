"""Limits that several job types share, and limits for each lane: their declaration, and the limit key of a job."""

import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from pydantic import BaseModel

from tests.support.builders import types_of
from tidemill import Adaptive, JobType, Lane, Rate, SharedLimit, job_type
from tidemill.application.operations.model_check import ModelCheck
from tidemill.domain.limits.limit_key import LimitKey
from tidemill.domain.limits.limits import Limit
from tidemill.domain.waiting.waiting import Line

TENANT = "111122223333:AROAEXAMPLE"
PAYMENTS = SharedLimit("payments", concurrency_per_key=5)


class Charge(BaseModel):
    account: str = "a"


def declared(name: str = "order.charge", **options: Any) -> JobType:
    return job_type(name, payload=Charge, **options)(lambda _payload, _run: None)


def key_of(job_type: JobType, *, tenant: str = TENANT, lane: str = Lane.BULK) -> str | None:
    line = job_type.limit_line(Charge(), tenant=tenant, lane=lane)
    return line.key if line else None


def test_the_limit_keys_of_types_with_a_limit_of_their_own_stay_as_they_are() -> None:
    """Documents, limit items and pauses are stored under them."""
    own = declared(concurrency_per_key=2)
    assert key_of(own) == '["order.charge", "", "111122223333:AROAEXAMPLE"]'
    assert key_of(declared(concurrency_per_key=2, across_tenants=True)) == '["order.charge", ""]'
    keyed = declared(rate_per_key=Rate(count=1, period=timedelta(seconds=1)), key=lambda charge: charge.account)
    assert key_of(keyed, tenant='a"é') == '["order.charge", "a", "a\\"\\u00e9"]'
    assert key_of(declared()) is None


def test_all_types_of_a_shared_limit_have_one_limit_key() -> None:
    types = [declared(name, limit=PAYMENTS) for name in ("order.charge", "order.refund")]

    assert {key_of(each) for each in types} == {'["limit:payments", "", "111122223333:AROAEXAMPLE"]'}
    assert {each.limit for each in types} == {Limit(concurrency=5)}
    keyed = declared(limit=replace(PAYMENTS, across_tenants=True), key=lambda charge: charge.account)
    assert key_of(keyed) == '["limit:payments", "a"]'


@pytest.mark.parametrize("options", [{"concurrency_per_key": 1, "per_lane": True}, {"limit": "shared"}])
def test_each_lane_has_a_limit_key_of_its_own(options: dict[str, Any]) -> None:
    if "limit" in options:
        options = {"limit": replace(PAYMENTS, per_lane=True)}
    made = declared(**options)
    first = "limit:payments" if made.shared_limit else "order.charge"

    assert key_of(made, lane=Lane.BULK) == f'["{first}", "", {{"lane": "bulk"}}, "{TENANT}"]'
    # No tenant can have the key of a lane.
    assert key_of(made, lane=Lane.BULK) != key_of(made, lane=Lane.CRITICAL)


@pytest.mark.parametrize(
    ("text", "key", "shown"),
    [
        ('["mail.welcome", "a"]', LimitKey(type="mail.welcome", text="a"), 'limit ["mail.welcome", "a"]'),
        (
            '["limit:mail", "", "ada"]',
            LimitKey(shared="mail", tenant="ada"),
            'shared limit mail ["limit:mail", "", "ada"]',
        ),
        (
            '["limit:mail", "", {"lane": "bulk"}]',
            LimitKey(shared="mail", lane="bulk"),
            'shared limit mail of lane bulk ["limit:mail", "", {"lane": "bulk"}]',
        ),
        (
            '["mail", "a", {"lane": "bulk"}, "ada"]',
            LimitKey(type="mail", text="a", lane="bulk", tenant="ada"),
            'limit of lane bulk ["mail", "a", {"lane": "bulk"}, "ada"]',
        ),
    ],
)
def test_a_line_says_whose_limit_it_is(text: str, key: LimitKey, shown: str) -> None:
    line = Line.for_limit(text)
    assert (line.limit_key, str(line), str(key)) == (key, shown, text)


@pytest.mark.parametrize(
    "line", [Line.for_cap("a", "bulk"), Line.for_limit(f'["t", "{"a" * 300}"]'), Line.for_type("t")]
)
def test_other_lines_have_no_limit_key(line: Line) -> None:
    assert line.limit_key is None


def test_a_shared_limit_may_adapt() -> None:
    adaptive = Adaptive(ceiling=9, target_seconds=1)
    assert declared(limit=SharedLimit("payments", concurrency_per_key=adaptive)).limit == Limit(adaptive=adaptive)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"limit": PAYMENTS, "concurrency_per_key": 1},
            "the type has the shared limit 'payments', so concurrency_per_key",
        ),
        ({"limit": PAYMENTS, "rate_per_key": Rate(count=1, period=timedelta(seconds=1))}, "remove them here"),
        ({"limit": PAYMENTS, "across_tenants": True}, "remove them here"),
        ({"limit": PAYMENTS, "per_lane": True}, "remove them here"),
        ({"limit": "payments"}, "limit is 'payments'; it must be a SharedLimit"),
        ({"per_lane": True}, "key, across_tenants and per_lane need a limit"),
        ({"per_lane": "yes", "concurrency_per_key": 1}, "per_lane is 'yes'; it must be True or False"),
    ],
)
def test_a_type_has_either_a_shared_limit_or_its_own(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        declared(**options)


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("Payments", {"concurrency_per_key": 1}, "the name of the shared limit is 'Payments'; use words of lower-case"),
        ("limit:x", {"concurrency_per_key": 1}, "use words of lower-case letters"),
        ("payments", {}, "the shared limit 'payments' bounds nothing"),
        ("payments", {"concurrency_per_key": 0}, "concurrency_per_key is 0; it must lie within 1 and 100"),
        ("payments", {"concurrency_per_key": "1"}, "concurrency_per_key is '1'; it must be a whole number"),
        ("payments", {"rate_per_key": 5}, "rate_per_key is 5; it must be a Rate"),
        ("payments", {"concurrency_per_key": 1, "per_lane": 1}, "per_lane is 1; it must be True or False"),
    ],
)
def test_a_wrong_shared_limit_is_refused(name: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        SharedLimit(name, **options)


def test_a_check_finds_the_new_limit_of_a_line() -> None:
    unread: Any = None
    own, shared = declared("mail.welcome", concurrency_per_key=2), declared(limit=PAYMENTS)
    check = ModelCheck(types_of(own, shared), payloads=unread)

    assert check.limit_of(Line.for_limit('["mail.welcome", ""]')) == Limit(concurrency=2)
    assert check.limit_of(Line.for_limit('["limit:payments", ""]')) == Limit(concurrency=5)
    # The type had a limit of its own, which the new code lacks.
    assert check.limit_of(Line.for_limit('["order.charge", ""]')) is None
    assert check.limit_of(Line.for_limit('["limit:other", ""]')) is None
    assert check.limit_of(Line.for_cap("a", "bulk")) is None
