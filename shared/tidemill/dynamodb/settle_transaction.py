"""Settle with the handler's own writes and follow-up jobs in one transaction: the exactly-once effect."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from tidemill.domain.errors import TransactionConflictError, WriteRefusedError
from tidemill.domain.job import Job
from tidemill.domain.outcomes import Settlement
from tidemill.domain.states import Write
from tidemill.dynamodb.document import decode
from tidemill.dynamodb.groups import DynamoGroups
from tidemill.dynamodb.transactions import Entry, Part, RefusedError, own, transact
from tidemill.dynamodb.update_requests import Request

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

#: How often the transaction is tried. Each try has new entries, since a follow-up job existed or its group had moved.
#: `application/settle.py` explains how this loop nests with the others.
TRIES: Final = 8


def settle_together(
    client: "DynamoDBClient",
    job: Job,
    request: Request,
    settlement: Settlement,
    *,
    table: str,
    groups: DynamoGroups,
    insertion: Callable[[Job], Request],
) -> None:
    """`request` is the settle of the job itself. Raises as `transact`, with `WriteRefusedError` for `RefusedError`."""
    effects = [Entry(Part.EFFECT, write) for write in settlement.writes]
    follow_ups = list(settlement.follow_ups)
    for _ in range(TRIES):
        placed, orders = groups.enter(follow_ups)
        puts = [own("Put", insertion(follow_up), table=table, part=Part.JOB) for follow_up in placed]
        try:
            transact(client, [own("Update", request, table=table), *puts, *orders, *effects])
        except RefusedError as refused:
            for refusal in refused.of(Part.OWN):
                current = decode(refusal.item) if refusal.item else None
                if current and job.settled_in(current):
                    return
                raise WriteRefusedError(Write.SETTLE, current) from refused
            # A follow-up job that exists was accepted before, and one job is all that the handler wants.
            existing = [refusal.entry for refusal in refused.of(Part.JOB)]
            follow_ups = [follow_up for follow_up, put in zip(follow_ups, puts, strict=True) if put not in existing]
        else:
            return
    raise TransactionConflictError(f"the groups of the follow-up jobs moved {TRIES} times")
