"""Limits in DynamoDB. One item per limit key holds its slots and its rate; one write takes both or neither."""

import contextlib
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from tidemill.application.ports import Draw, LimitSlot
from tidemill.aws.clients import Item, translated
from tidemill.domain.errors import StoreUnavailableError
from tidemill.domain.limits import Rate
from tidemill.dynamodb.limit_item import (
    LAST,
    LINE,
    acquire_request,
    chosen_attribute,
    earliest_entry,
    interval,
    line_request,
    release_request,
    slot_attributes,
    time_of,
    tokens,
)
from tidemill.dynamodb.update_requests import Request

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

#: How often a run tries to write. Each try uses the item that refused the one before.
_TRIES: Final = 4
#: The ceiling of the first random wait for a slot. It doubles with each hold in a row, up to the longest.
_FIRST_WAIT_SECONDS: Final = 2.0
LONGEST_WAIT_SECONDS: Final = 300.0
#: How far ahead a job that waits for a rate gets a time of its own. A job further back in the line tries again within
#: this time, so a limit key whose waiting jobs were cancelled, or whose rate was raised, is idle for no longer.
LONGEST_LINE: Final = timedelta(hours=1)


class _RefusedError(Exception):
    """The condition of a write did not hold. `item` is the item that refused it."""

    def __init__(self, item: Item) -> None:
        super().__init__()
        self.item = item


class DynamoLimits:
    """`Limits` over one table. Both methods raise `StoreUnavailableError`."""

    def __init__(self, client: "DynamoDBClient", *, table: str, draw: Draw) -> None:
        self._client = client
        self._table = table
        self._draw = draw

    def acquire(self, slot: LimitSlot, *, now: datetime) -> datetime | None:
        found: Item = {}
        for _ in range(_TRIES):
            if (request := acquire_request(slot, found, now=now)) is None:
                break
            try:
                self._update(request)
            except _RefusedError as refused:
                found = refused.item
                if slot.token in {found.get(LAST, {}).get("S"), *tokens(found).values()}:
                    return None  # the SDK sent it twice
            except StoreUnavailableError:
                # The write may have been applied. Without a release, the unused slot is taken until its lease ends.
                with contextlib.suppress(StoreUnavailableError):
                    self.release(slot)
                raise
            else:
                return None
        return self._wait_until(slot, found, now)

    def release(self, slot: LimitSlot) -> None:
        attributes = slot_attributes(slot)
        attribute = chosen_attribute(attributes, slot) if attributes else None
        for _ in range(2):
            if attribute is None:
                return
            try:
                self._update(release_request(slot, attribute))
            except _RefusedError as refused:
                # The run has another slot attribute, or its time was up and another run has taken the slot.
                attribute = next((name for name, token in tokens(refused.item).items() if token == slot.token), None)
            else:
                return

    def _wait_until(self, slot: LimitSlot, found: Item, now: datetime) -> datetime:
        """When to try again: at a time of its own for a rate, at a random time for a slot."""
        rate = slot.limit.rate
        if rate and (earliest := earliest_entry(rate, found)) > now:
            return self._time_in_line(slot, rate, found, earliest, now)
        ceiling_seconds = min(_FIRST_WAIT_SECONDS * 2.0 ** min(slot.holds, 30), LONGEST_WAIT_SECONDS)
        return now + timedelta(seconds=ceiling_seconds * (1 + self._draw()) / 2)

    def _time_in_line(self, slot: LimitSlot, rate: Rate, found: Item, earliest: datetime, now: datetime) -> datetime:
        """The first time, from the earliest on, that no other job was given.

        If all waiting jobs were given the earliest time, they would come back together: one would start, and each other
        would have claimed its job for nothing, again at every interval. The time is a hint; the rate decides.
        """
        hint = earliest
        for _ in range(_TRIES):
            hint = max(time_of(found, LINE), earliest)
            if hint > earliest + LONGEST_LINE:
                return earliest + LONGEST_LINE * (1 + self._draw()) / 2
            try:
                written = self._update(line_request(slot, rate, found, earliest, now=now))
            except _RefusedError as refused:
                found = refused.item
            else:
                return time_of(written, LINE) - interval(rate)
        return hint + rate.interval * self._draw()

    def _update(self, request: Request) -> Item:
        try:
            with translated():
                answer: Any = self._client.update_item(
                    TableName=self._table,
                    ReturnValues="UPDATED_NEW",
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                    **request,
                )
        except ClientError as error:
            response: Any = error.response
            if response["Error"]["Code"] != "ConditionalCheckFailedException":
                raise
            raise _RefusedError(response.get("Item", {})) from None
        attributes: Item = answer.get("Attributes", {})
        return attributes
