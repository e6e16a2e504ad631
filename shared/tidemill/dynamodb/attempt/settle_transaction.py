"""Settle with the handler's own writes and follow-up jobs in one transaction: the exactly-once effect."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from tidemill.aws.clients import Item
from tidemill.domain.attempt.outcomes import Settlement
from tidemill.domain.errors import KeyReusedError, TransactionConflictError, WriteRefusedError
from tidemill.domain.job import Job
from tidemill.domain.states import Write
from tidemill.dynamodb.attempt.effects import entries
from tidemill.dynamodb.document import decode
from tidemill.dynamodb.groups.groups import DynamoGroups
from tidemill.dynamodb.transactions import Entry, Part, RefusedError, own, transact
from tidemill.dynamodb.update_requests import Request

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

#: How often the transaction is tried. Each try has new entries, since a follow-up job existed or its group had moved.
#: `application/attempt/settle.py` explains how this loop nests with the others.
TRIES: Final = 8


def settle_with_effects(
    client: "DynamoDBClient",
    job: Job,
    request: Request,
    settlement: Settlement,
    *,
    table: str,
    groups: DynamoGroups,
    insertion: Callable[[Job], Request],
) -> list[Job]:
    """`request` is the settle of the job itself. Returns the follow-up jobs that existed before.

    Raises `KeyReusedError` if one of those has another body, and as `transact`, with `WriteRefusedError` for
    `RefusedError`.
    """
    effects = [Entry(Part.EFFECT, write) for write in entries(settlement.writes)]
    follow_ups, existed = list(settlement.follow_ups), list[Job]()
    for _ in range(TRIES):
        placed, orders = groups.enter(follow_ups)
        puts = [own("Put", insertion(follow_up), table=table, part=Part.JOB) for follow_up in placed]
        try:
            transact(client, [own("Update", request, table=table), *puts, *orders, *effects])
        except RefusedError as refused:
            found = _found(follow_ups, puts, refused)
            for refusal in refused.of(Part.OWN):
                current = decode(refusal.item) if refusal.item else None
                if current and job.settled_as(settlement.state, current):
                    # An earlier send was applied. It wrote the follow-up jobs that have our payload.
                    return [
                        *existed,
                        *(each for each, item in found if _text(item, "payload_at") != each.payload.location),
                    ]
                raise WriteRefusedError(Write.SETTLE, current) from refused
            for follow_up, item in found:
                if _text(item, "body_hash") != follow_up.body_hash:
                    raise KeyReusedError(
                        f"the follow-up job {follow_up.id} of type {follow_up.type} exists already, with another body; "
                        "give it another idempotency key, or the body of the existing job"
                    ) from refused
                if not follow_up.payload.location or _text(item, "payload_at") != follow_up.payload.location:
                    # It was accepted before, and one job is all that the handler wants.
                    existed.append(follow_up)
                # Else an earlier send wrote it, and this job is busy now: the next try finds it settled.
                follow_ups.remove(follow_up)
        else:
            return existed
    raise TransactionConflictError(f"the groups of the follow-up jobs moved {TRIES} times")


def _found(follow_ups: Sequence[Job], puts: Sequence[Entry], refused: RefusedError) -> list[tuple[Job, Item]]:
    """The follow-up jobs that exist, each with the item that has its key. A newer version may have written the item."""
    items = [(refusal.entry, refusal.item or {}) for refusal in refused.of(Part.JOB)]
    return [
        (follow_up, item)
        for follow_up, put in zip(follow_ups, puts, strict=True)
        for entry, item in items
        if entry is put
    ]


def _text(item: Item, name: str) -> str | None:
    return item[name]["S"] if name in item else None
