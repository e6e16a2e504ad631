"""The write of a backfill as a DynamoDB request. Pure. Each clause has a comment with its race."""

from tidemill.aws.attribute_values import milliseconds, number, text, whole_seconds
from tidemill.domain.job import Job
from tidemill.domain.outcomes import Settlement
from tidemill.domain.skipped_work import Backfilled
from tidemill.domain.states import State
from tidemill.dynamodb.clauses import NO_CLAUSE, Clause
from tidemill.dynamodb.document import BACKFILLED, SCHEMA_ATTRIBUTE, SCHEMA_VERSION, SKIPPED, key
from tidemill.dynamodb.update_requests import Request, update
from tidemill.names import TTL_ATTRIBUTE


def skipped(settlement: Settlement) -> Clause:
    """A success names the work that it skipped."""
    return Clause(sets={"skipped": SKIPPED.encode(settlement.skipped)}) if settlement.skipped else NO_CLAUSE


def mark_backfilled(done: Job, entry: Backfilled) -> Request:
    """Name, in the job, the one that makes up for skipped work. As an undo, it leaves schema number and history alone.

    A success has its marks from its settle on, and no later write changes them.
    """
    earlier = len(done.backfilled)
    return update(
        key(done.tenant, done.id),
        sets={"backfilled": BACKFILLED.encode((*done.backfilled, entry))},
        conditions=[
            # Two callers at once: the second would submit a second job, or lose the entry of another name.
            "size(#backfilled) = :earlier" if earlier else "attribute_not_exists(#backfilled)",
            # Only a success has skipped work.
            "#state = :succeeded",
            # It expired, and a new job replaced it, which has marks of its own.
            "#created_at = :created_at",
            # An expired job counts as missing, although DynamoDB deletes it days late.
            "#expires_at > :now",
            # A newer version may have written the document, as for every other write.
            "#schema <= :schema",
        ],
        names=["state", "created_at", TTL_ATTRIBUTE, SCHEMA_ATTRIBUTE],
        values={
            **({":earlier": number(earlier)} if earlier else {}),
            ":succeeded": text(State.SUCCEEDED),
            ":created_at": milliseconds(done.created_at),
            ":now": whole_seconds(entry.at),
            ":schema": number(SCHEMA_VERSION),
        },
    )
