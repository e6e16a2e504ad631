"""Limits in DynamoDB. One item per limit key holds its slots and its rate; one write takes both or neither."""

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from tidemill.application.ports import WHOLE, Entered, LimitSlot, Part
from tidemill.aws.clients import Item, translated
from tidemill.aws.refused_write import refusing_item
from tidemill.domain.errors import OutdatedChangeError, StoreUnavailableError
from tidemill.domain.limits.adaptive_limit import ConcurrencyChange
from tidemill.domain.limits.limit_state import AHEAD, NEAR, LimitState, Turn, burst, earliest, run_name, slack
from tidemill.domain.limits.limits import Limit, Rate
from tidemill.domain.time_constants import EPOCH
from tidemill.domain.waiting.waiting import Line
from tidemill.dynamodb.attention_index import entry_pages
from tidemill.dynamodb.limits import limit_item
from tidemill.dynamodb.update_requests import Request

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

#: The mark of a line serves all jobs that are parked within this time.
LISTED_FOR: Final = timedelta(minutes=1)
#: How often a run tries to write. Each try uses the item that refused the one before.
_TRIES: Final = 4
#: The most lines of a rate that a process remembers.
_MOST_REMEMBERED: Final = 1_000


class _RefusedError(Exception):
    """The condition of a write did not hold. `state` is what the item said."""

    def __init__(self, state: LimitState) -> None:
        super().__init__()
        self.state = state


class DynamoLimits:
    """`Limits` over one table. All methods raise `StoreUnavailableError`."""

    def __init__(self, client: "DynamoDBClient", *, table: str) -> None:
        self._client = client
        self._table = table
        #: By line: the last arrival time that this process has seen.
        self._arrivals: dict[Line, datetime] = {}

    def acquire(self, slot: LimitSlot, *, now: datetime) -> Entered | datetime | Line:
        state = self._guess(slot, now)
        for _ in range(_TRIES):
            turn = self._turn(slot, state, now)
            try:
                if turn:
                    self._wait(slot, state, turn, now)
                    return turn
                state = self._update(limit_item.enter(slot, state, now=now))
                self._remember(slot, state)
                return _entered(slot, state, now)
            except _RefusedError as refused:
                state = refused.state
                self._remember(slot, state)
                if slot.token == state.last_run or run_name(slot.token) in (state.held or ()):
                    return _entered(slot, state, now)  # the SDK sent it twice
        # Many others write at this moment. The job waits, and the look after it is parked asks again.
        self._list(slot, now)
        return slot.line

    def release(self, slot: LimitSlot, change: ConcurrencyChange | None = None) -> bool:
        try:
            self._update(limit_item.leave(slot, change))
        except _RefusedError as refused:
            if run_name(slot.token) not in (refused.state.held or ()):
                return False
            if change and not refused.state.marked:
                raise OutdatedChangeError from None
            return True
        return False

    def vacate(self, line: Line, name: str, change: ConcurrencyChange | None = None) -> None:
        if not self._holds(limit_item.vacate(line, name, change)) and change:
            raise OutdatedChangeError

    def look(self, line: Line) -> LimitState:
        with translated():
            answer = self._client.get_item(TableName=self._table, Key=limit_item.item_key(line), ConsistentRead=True)
        return limit_item.decoded(answer.get("Item", {}))

    def reserve(
        self,
        line: Line,
        state: LimitState,
        turns: Sequence[Turn],
        *,
        leaving: str | None,
        now: datetime,
        change: ConcurrencyChange | None = None,
    ) -> bool:
        request = limit_item.reserve(line, state, turns, leaving=leaving, now=now, change=change)
        return request is None or self._holds(request)

    def list_line(self, line: Line, rate: Rate, *, job: tuple[str, str], now: datetime) -> None:
        self._list(LimitSlot(line=line, limit=Limit(rate=rate), token="", until=now, job=job), now)

    def clear(self, line: Line, state: LimitState) -> None:
        self._holds(limit_item.clear(line, state))

    def lines(self, part: Part = WHOLE) -> Iterator[Line]:
        for shard in range(limit_item.LINE_SHARDS)[part.number :: part.count]:
            partition = limit_item.lines_partition(shard)
            for entries in entry_pages(self._client, table=self._table, partition=partition):
                yield from map(limit_item.line_of, entries)

    def _guess(self, slot: LimitSlot, now: datetime) -> LimitState:
        """For the first try: most runs find room. A released job has a reservation.

        The arrival time only rises, so a key that was in use by what this process has seen still is.
        """
        held = {slot.reservation: now} if slot.released else {}
        if (rate := slot.limit.rate) is None:
            return LimitState(held=held, blind=True)
        # Not so late that the run would wait. Only the item can say that.
        arrival = min(self._arrivals.get(slot.line, EPOCH), now + burst(rate))
        return LimitState(held=held, arrival=arrival, blind=True)

    def _remember(self, slot: LimitSlot, state: LimitState) -> None:
        if slot.limit.rate:
            if len(self._arrivals) >= _MOST_REMEMBERED:
                self._arrivals.clear()
            self._arrivals[slot.line] = state.arrival

    def _turn(self, slot: LimitSlot, state: LimitState, now: datetime) -> datetime | Line | None:
        """None if there is room; else the time that its rate gives to the job, or the line to wait in."""
        limit = slot.limit
        if (slots := limit.slots(state.adapted)) is not None:
            spare = state.reservation_for_use(slot.reservation) if slot.released else None
            # A decrease takes no slot from the job that it is reserved for.
            handed = limit.adaptive is not None and spare is not None
            if len(state.taken(now) - {spare}) >= slots and not handed:
                return slot.line
        if limit.rate:
            known = state.under(limit.rate, now)
            at = earliest(limit.rate, known.arrival)
            if slot.released and at <= now + slack(limit.rate):
                return None
            at = max(at, known.promised)
            if at > now:
                # While a line stands, the later times are for those who wait in it.
                return at if at <= now + (NEAR if state.marked else AHEAD) else slot.line
        return None

    def _wait(self, slot: LimitSlot, state: LimitState, turn: datetime | Line, now: datetime) -> None:
        """Write what a job that waits needs: its time is its own, or its line is listed. Raises `_RefusedError`."""
        if isinstance(turn, datetime):
            if slot.limit.rate:
                self._update(limit_item.promise(slot, slot.limit.rate, state, turn, now=now))
        elif not _listed_later(slot, state, now):
            self._update(limit_item.mark(slot, state, now=now))

    def _list(self, slot: LimitSlot, now: datetime) -> None:
        """Mark the line, so that wake knows it. Raises `StoreUnavailableError`."""
        for _ in range(_TRIES):
            state = self.look(slot.line)
            # One write serves the jobs of a minute. Wake keeps the mark for much longer.
            listed = state.marked and state.last_at > now - LISTED_FOR
            if listed or self._holds(limit_item.mark(slot, state, now=now)):
                return
        raise StoreUnavailableError(f"other workers write the item of the line {slot.line}")

    def _holds(self, request: Request) -> bool:
        try:
            self._update(request)
        except _RefusedError:
            return False
        return True

    def _update(self, request: Request) -> LimitState:
        try:
            with translated():
                answer: Any = self._client.update_item(
                    TableName=self._table,
                    ReturnValues="ALL_NEW",
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                    **request,
                )
        except ClientError as error:
            raise _RefusedError(limit_item.decoded(refusing_item(error) or {})) from None
        item: Item = answer.get("Attributes", {})
        return limit_item.decoded(item)


def _listed_later(slot: LimitSlot, state: LimitState, now: datetime) -> bool:
    """Whether a job that came after this one has listed the line. That mark stays for longer than this one would."""
    gives_back = slot.released and slot.reservation in (state.held or ())
    return state.marked and state.last_at > now and not gives_back


def _entered(slot: LimitSlot, state: LimitState, now: datetime) -> Entered:
    if slot.limit.adaptive is None:
        return Entered(line_stands=state.marked)
    return Entered(line_stands=state.marked, adapted=state.adapted, taken=len(state.taken(now)))
