"""The marks of undone and superseded jobs as DynamoDB requests. Pure. Each clause has a comment with its race."""

from tidemill.aws.attribute_values import milliseconds, number, text, whole_seconds
from tidemill.aws.clients import Item
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
            # It was superseded since it was read: the job that supersedes it undoes it then.
            _superseded_as_read(done),
            # A newer version may have written the document, as for every other write.
            "#schema <= :schema",
        ],
        names=["state", "created_at", "superseded_by", TTL_ATTRIBUTE, SCHEMA_ATTRIBUTE],
        values={
            ":succeeded": text(State.SUCCEEDED),
            ":created_at": milliseconds(done.created_at),
            ":now": whole_seconds(entry.at),
            ":schema": number(SCHEMA_VERSION),
            **_superseded(done),
        },
    )


def mark_superseded(earlier: Job, job: Job) -> Request:
    """Say in the earlier job which other one supersedes it. It leaves schema number and history alone, too."""
    return update(
        key(earlier.tenant, earlier.id),
        sets={"superseded_by": text(job.id)},
        conditions=[
            # Two jobs that supersede it at once: the second is refused.
            _superseded_as_read(earlier),
            # It ended since it was read, perhaps without an undo.
            "#state = :state",
            # It was undone since it was read, perhaps in its group, behind this job.
            f"attribute_{'exists' if earlier.undone else 'not_exists'}(#undone)",
            # It expired, and a new job replaced it.
            "#created_at = :created_at",
            # An expired job counts as missing, although DynamoDB deletes it days late.
            "(attribute_not_exists(#expires_at) OR #expires_at > :now)",
            # A newer version may have written the document, as for every other write.
            "#schema <= :schema",
        ],
        names=["state", "undone", "created_at", TTL_ATTRIBUTE, SCHEMA_ATTRIBUTE],
        values={
            ":state": text(earlier.state),
            ":created_at": milliseconds(earlier.created_at),
            ":now": whole_seconds(job.created_at),
            ":schema": number(SCHEMA_VERSION),
            **_superseded(earlier),
        },
    )


def _superseded_as_read(job: Job) -> str:
    return "#superseded_by = :superseded_by" if job.superseded_by else "attribute_not_exists(#superseded_by)"


def _superseded(job: Job) -> dict[str, Item]:
    return {":superseded_by": text(job.superseded_by)} if job.superseded_by else {}
