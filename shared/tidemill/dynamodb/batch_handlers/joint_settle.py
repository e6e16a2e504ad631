"""Settle several jobs in one transaction, with the writes of all of them. Each is fenced by its own condition."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from tidemill.application.ports import Settling
from tidemill.domain.errors import (
    EffectRefusedError,
    StoreUnavailableError,
    TidemillError,
    TransactionConflictError,
    TransactionTooLargeError,
    WriteRefusedError,
)
from tidemill.domain.states import Write
from tidemill.dynamodb.attempt.effects import entries, entry_names
from tidemill.dynamodb.document import decode
from tidemill.dynamodb.transactions import MOST_ENTRIES, Entry, Part, RefusedError, own, transact
from tidemill.dynamodb.update_requests import Request

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


class JointSettle:
    """For one call of a batch handler."""

    def __init__(
        self,
        client: "DynamoDBClient",
        *,
        table: str,
        request: Callable[[Settling], Request],
        alone: Callable[[Settling], object],
    ) -> None:
        """`alone` settles one job by itself, and raises as `AttemptStore.settle`."""
        self._client = client
        self._table = table
        self._request = request
        self._alone = alone
        #: By the token of the claim.
        self._errors: dict[str, TidemillError] = {}

    def settle(self, settlings: Sequence[Settling]) -> list[TidemillError | None]:
        """For each, in their order: None if it was written, or the error of its settle.

        One transaction after another: they may add to the same item, and at the same time they would conflict.
        """
        for part in _parts(settlings):
            self._settle_part(part)
        return [self._errors.get(_fence(each)) for each in settlings]

    def _settle_part(self, part: Sequence[Settling]) -> None:
        while len(part) > 1:
            settles = [own("Update", self._request(each), table=self._table) for each in part]
            try:
                effects = entries([write for each in part for write in each.settlement.writes])
                transact(self._client, [*settles, *(Entry(Part.EFFECT, effect) for effect in effects)])
            except RefusedError as refused:
                part = self._without_refused(part, settles, refused)
            except (EffectRefusedError, TransactionTooLargeError):
                # One of them asked for something that DynamoDB refuses. It must not take the others with it.
                middle = len(part) // 2
                self._settle_part(part[:middle])
                part = part[middle:]
            except (StoreUnavailableError, TransactionConflictError) as error:
                self._errors |= {_fence(each): error for each in part}
                return
            else:
                return
        for each in part:
            try:
                self._alone(each)
            except TidemillError as error:
                self._errors[_fence(each)] = error

    def _without_refused(
        self, part: Sequence[Settling], settles: Sequence[Entry], refused: RefusedError
    ) -> list[Settling]:
        """Those that no condition has refused. Notes the others, unless an earlier send has written them."""
        left = []
        for each, settle in zip(part, settles, strict=True):
            refusal = next((one for one in refused.of(Part.OWN) if one.entry is settle), None)
            if refusal is None:
                left.append(each)
                continue
            current = decode(refusal.item) if refusal.item else None
            if current is None or not each.job.settled_in(current):
                self._errors[_fence(each)] = WriteRefusedError(Write.SETTLE, current)
        return left


def _parts(settlings: Sequence[Settling]) -> Iterator[list[Settling]]:
    """Yield as many at a time as fit into a transaction."""
    part: list[Settling] = []
    names: set[object] = set()
    for each in settlings:
        own_names = set(entry_names(each.settlement.writes))
        if part and len(part) + 1 + len(names | own_names) > MOST_ENTRIES:
            yield part
            part, names = [], set()
        part.append(each)
        names |= own_names
    if part:
        yield part


def _fence(settling: Settling) -> str:
    """The token of the claim: no two have the same."""
    return settling.job.lease.owner or ""
