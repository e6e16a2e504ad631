"""The limits of each key: its slots and its rate in one item, taken by one conditional write or not at all."""

import contextlib
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from tidemill.application.ports import Draw, Place
from tidemill.aws.clients import Item, translated
from tidemill.domain.errors import StoreUnavailableError
from tidemill.domain.limits import Rate
from tidemill.dynamodb.limit_item import (
    LAST,
    LINE,
    choice,
    earliest_entry,
    interval,
    leaving,
    lining_up,
    slots_of,
    taking,
    time_of,
    tokens,
)
from tidemill.dynamodb.update_requests import Request

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

#: How often a run tries, each time by what the refusal before has told.
_TRIES: Final = 4
#: The ceiling of the random wait for a slot. It doubles with each hold in a row.
_FIRST_WAIT_SECONDS: Final = 2.0
LONGEST_WAIT_SECONDS: Final = 300.0
#: How far ahead those who wait for a rate are told a time of their own. Whoever is further back asks again within it,
#: so a key whose waiting jobs were cancelled, or whose rate was raised, is not left idle for longer.
LONGEST_LINE: Final = timedelta(hours=1)


class _RefusedError(Exception):
    """The condition did not hold. `item` is what refused it."""

    def __init__(self, item: Item) -> None:
        super().__init__()
        self.item = item


class DynamoLimits:
    """`Limits` over one table. Both raise `StoreUnavailableError`."""

    def __init__(self, client: "DynamoDBClient", *, table: str, draw: Draw) -> None:
        self._client = client
        self._table = table
        self._draw = draw

    def enter(self, place: Place, *, now: datetime) -> datetime | None:
        found: Item = {}
        for _ in range(_TRIES):
            if (request := taking(place, found, now=now)) is None:
                break
            try:
                self._update(request)
            except _RefusedError as refused:
                found = refused.item
                if place.token in {found.get(LAST, {}).get("S"), *tokens(found).values()}:
                    return None  # the SDK sent it twice
            except StoreUnavailableError:
                # It may have been applied, and a slot that nobody uses would be taken until the end of its lease.
                with contextlib.suppress(StoreUnavailableError):
                    self.leave(place)
                raise
            else:
                return None
        return self._until(place, found, now)

    def leave(self, place: Place) -> None:
        slots = slots_of(place)
        slot = choice(slots, place) if slots else None
        for _ in range(2):
            if slot is None:
                return
            try:
                self._update(leaving(place, slot))
            except _RefusedError as refused:
                # It entered by another slot, or its time was up and the slot has gone to somebody else.
                slot = next((name for name, token in tokens(refused.item).items() if token == place.token), None)
            else:
                return

    def _until(self, place: Place, found: Item, now: datetime) -> datetime:
        """When it is worth trying again: at a time of its own for a rate, at a random one for a slot."""
        rate = place.limit.rate
        if rate and (earliest := earliest_entry(rate, found)) > now:
            return self._time_in_line(place, rate, found, earliest, now)
        ceiling_seconds = min(_FIRST_WAIT_SECONDS * 2.0 ** min(place.holds, 30), LONGEST_WAIT_SECONDS)
        return now + timedelta(seconds=ceiling_seconds * (1 + self._draw()) / 2)

    def _time_in_line(self, place: Place, rate: Rate, found: Item, earliest: datetime, now: datetime) -> datetime:
        """The first time, from the earliest on, that nobody else was told.

        Told the earliest, all who wait would come back together: one would enter, and each other would have claimed
        its job for nothing, at every interval anew. What they are told is a hint; who enters is for the rate to say.
        """
        told = earliest
        for _ in range(_TRIES):
            told = max(time_of(found, LINE), earliest)
            if told > earliest + LONGEST_LINE:
                return earliest + LONGEST_LINE * (1 + self._draw()) / 2
            try:
                written = self._update(lining_up(place, rate, found, earliest, now=now))
            except _RefusedError as refused:
                found = refused.item
            else:
                return time_of(written, LINE) - interval(rate)
        return told + rate.interval * self._draw()

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
