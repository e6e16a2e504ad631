"""What a process makes of the answers of a limit item: of refused returns of a slot, and of the times of rates."""

from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.support.builders import LEASE, NOW, SECOND
from tests.support.said_requests import said
from tidemill.application.ports import LimitSlot
from tidemill.aws.attribute_values import milliseconds
from tidemill.domain.errors import OutdatedChangeError
from tidemill.domain.limits.adaptive_limit import Adapted, ConcurrencyChange, RunSample
from tidemill.domain.limits.limit_state import LimitState, run_name
from tidemill.domain.limits.limits import Limit, Rate
from tidemill.domain.records import replace
from tidemill.domain.time_constants import EPOCH, MICROSECOND
from tidemill.domain.waiting.waiting import Line
from tidemill.dynamodb.limits.limit_item import decoded
from tidemill.dynamodb.limits.limits import DynamoLimits

SLOT = LimitSlot(line=Line.for_limit("a"), limit=Limit(concurrency=2), token="t", until=NOW + LEASE, job=("ada", "j"))
CHANGE = ConcurrencyChange(step=1, sample=RunSample(entered=Adapted(allowed=2, falls=1), taken=1, seconds=2))
HELD = {"held": {"M": {run_name("t"): milliseconds(NOW + LEASE)}}}
MARK = {"attention": {"S": "lines#3"}, "last_at": milliseconds(NOW)}


class Refuses:
    def __init__(self, item: Any) -> None:
        self._item = item

    def update_item(self, **_request: Any) -> None:
        refusal: Any = {"Error": {"Code": "ConditionalCheckFailedException", "Message": ""}, "Item": self._item}
        raise ClientError(refusal, "UpdateItem")


def refused_by(item: Any) -> DynamoLimits:
    client: Any = Refuses(item)
    return DynamoLimits(client, table="jobs")


@pytest.mark.parametrize(
    ("item", "change", "waits"),
    [
        # A job may wait for the slot.
        (HELD | MARK, None, True),
        (HELD | MARK, CHANGE, True),
        (HELD, None, True),
        # It is gone, with all that this run has measured.
        ({}, None, False),
        (MARK, CHANGE, False),
    ],
)
def test_a_slot_that_is_not_taken_back_is_one_that_a_job_waits_for(
    item: Any, change: ConcurrencyChange | None, waits: bool
) -> None:
    assert refused_by(item).release(SLOT, change) is waits


def test_a_change_that_another_run_has_outdated_is_reported() -> None:
    with pytest.raises(OutdatedChangeError):
        refused_by(HELD).release(SLOT, CHANGE)
    with pytest.raises(OutdatedChangeError):
        refused_by(HELD).vacate(SLOT.line, "a", CHANGE)


def test_a_slot_that_is_gone_needs_no_giving_back() -> None:
    refused_by({}).vacate(SLOT.line, "a")


def test_an_item_without_marks_says_nothing_of_jobs_that_wait() -> None:
    assert decoded({}) == LimitState(held=None)


def test_a_process_remembers_several_rates_at_once() -> None:
    conditions: list[list[str]] = []

    class Grants:
        def update_item(self, **request: Any) -> Any:
            conditions.append(said(request)[2])
            return {"Attributes": {"arrival": {"N": str((NOW + SECOND - EPOCH) // MICROSECOND)}}}

    client: Any = Grants()
    limits, paced = DynamoLimits(client, table="jobs"), Limit(rate=Rate(count=2, period=timedelta(minutes=1)))
    for key in ("a", "b", "c", "a"):
        limits.acquire(replace(SLOT, line=Line.for_limit(key), limit=paced), now=NOW)

    in_use = f"arrival > {(NOW - EPOCH) // MICROSECOND}"
    assert [in_use in each for each in conditions] == [False, False, False, True]
