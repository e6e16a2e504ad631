"""The write of an undo as a DynamoDB request. Pure. Each clause has a comment with its race."""

from tidemill.aws.attribute_values import milliseconds, number, text, whole_seconds
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.domain.undo import Undone
from tidemill.dynamodb.document import SCHEMA_ATTRIBUTE, SCHEMA_VERSION, UNDONE, key
from tidemill.dynamodb.update_requests import Request, update
from tidemill.names import TTL_ATTRIBUTE


def mark_undone(done: Job, entry: Undone) -> Request:
    """Say in the job which other one undoes it. As a cancel request, it leaves schema number and history alone."""
    return update(
        key(done.tenant, done.id),
        sets={"undone": UNDONE.encode(entry)},
        conditions=[
            # Two callers at once: the second finds the job of the first.
            "attribute_not_exists(#undone)",
            # Only an effect that has taken place can be undone.
            "#state = :succeeded",
            # It expired, and a new job replaced it, whose effect is another.
            "#created_at = :created_at",
            # An expired job counts as missing, although DynamoDB deletes it days late.
            "#expires_at > :now",
            # A newer version may have written the document, as for every other write.
            "#schema <= :schema",
        ],
        names=["state", "created_at", TTL_ATTRIBUTE, SCHEMA_ATTRIBUTE],
        values={
            ":succeeded": text(State.SUCCEEDED),
            ":created_at": milliseconds(done.created_at),
            ":now": whole_seconds(entry.at),
            ":schema": number(SCHEMA_VERSION),
        },
    )
