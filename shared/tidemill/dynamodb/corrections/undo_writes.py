"""The marks of undone and superseded jobs as DynamoDB requests. Pure. Each clause has a comment with its race."""

from datetime import datetime, timedelta

from tidemill.aws.attribute_values import milliseconds, number, seconds, text, whole_seconds
from tidemill.aws.clients import Item
from tidemill.domain.attempt.outcomes import Settlement
from tidemill.domain.corrections.undo import Undone
from tidemill.domain.job import OWNER, Job
from tidemill.domain.job_parts import CancelRequest
from tidemill.domain.states import AT_REST, State
from tidemill.dynamodb.clauses import NO_CLAUSE, Clause
from tidemill.dynamodb.document import SCHEMA_ATTRIBUTE, SCHEMA_VERSION, UNDO, UNDONE, key
from tidemill.dynamodb.operations import operator_writes
from tidemill.dynamodb.update_requests import Request, also, update
from tidemill.names import TTL_ATTRIBUTE


def undo_kept(settlement: Settlement) -> Clause:
    """A success keeps the job that would undo its effect."""
    return NO_CLAUSE if settlement.undo is None else Clause(sets={"undo": UNDO.encode(settlement.undo)})


def mark_undone(done: Job, entry: Undone) -> Request:
    """Say in the job which other one undoes it. As a cancel request, it leaves schema number and history alone."""
    return update(
        key(done.tenant, done.id),
        sets={"undone": UNDONE.encode(entry)},
        conditions=[
            # Two callers at once: the second finds the job of the first.
            _undone_as_read(done),
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
            **_undone(done),
            **_superseded(done),
        },
    )


def mark_superseded(earlier: Job, job: Job, *, retention: timedelta) -> Request:
    """Say in the earlier job which other one supersedes it, and cancel it unless it has ended.

    A job that has succeeded stays for a whole retention time from now, since its undo is in its document.
    """
    marks = {"superseded_by": text(job.id)}
    asked = CancelRequest(by=OWNER, reason=f"superseded by job {job.id}")
    if earlier.state in AT_REST:
        cancel = operator_writes.cancel(earlier, asked, now=job.created_at, retention=retention, as_read=True)
        return also(cancel, sets=marks, conditions=[_superseded_as_read(earlier)], values=_superseded(earlier))
    if earlier.state is State.RUNNING:
        request = operator_writes.request_cancel(earlier, asked, now=job.created_at, as_read=True)
        return also(request, sets=marks, conditions=[_superseded_as_read(earlier)], values=_superseded(earlier))
    if earlier.state is State.SUCCEEDED:
        marks[TTL_ATTRIBUTE] = seconds(_kept_until(earlier, job.created_at, retention))
    return update(
        key(earlier.tenant, earlier.id),
        sets=marks,
        conditions=[
            # Two jobs that supersede it at once: the second is refused.
            _superseded_as_read(earlier),
            # It was undone since it was read, perhaps in its group, behind this job.
            _undone_as_read(earlier),
            # It expired, and a new job replaced it.
            "#state = :state",
            "#created_at = :created_at",
            # An expired job counts as missing, although DynamoDB deletes it days late.
            f"#{TTL_ATTRIBUTE} > :now",
            # A newer version may have written the document, as for every other write.
            f"#{SCHEMA_ATTRIBUTE} <= :schema",
        ],
        names=["state", "undone", "created_at", TTL_ATTRIBUTE, SCHEMA_ATTRIBUTE],
        values={
            ":state": text(earlier.state),
            ":created_at": milliseconds(earlier.created_at),
            ":now": whole_seconds(job.created_at),
            ":schema": number(SCHEMA_VERSION),
            **_undone(earlier),
            **_superseded(earlier),
        },
    )


def _kept_until(earlier: Job, now: datetime, retention: timedelta) -> datetime:
    anew = now + (earlier.lifetime.retention or retention)
    return max(earlier.lifetime.expires_at or anew, anew)


def _superseded_as_read(job: Job) -> str:
    return "#superseded_by = :superseded_by" if job.correction.superseded_by else "attribute_not_exists(#superseded_by)"


def _superseded(job: Job) -> dict[str, Item]:
    return {":superseded_by": text(job.correction.superseded_by)} if job.correction.superseded_by else {}


def _undone_as_read(job: Job) -> str:
    return "#undone = :undone" if job.correction.undone else "attribute_not_exists(#undone)"


def _undone(job: Job) -> dict[str, Item]:
    return {":undone": UNDONE.encode(job.correction.undone)} if job.correction.undone else {}
