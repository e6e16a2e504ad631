"""The canary: a job that shows that jobs of its lane get through, from the API to a conditional effect."""

from pydantic import BaseModel

from tidemill import Cancelled, Done, Lane, Run, TransactWrite, job_type, setting
from tidemill.application.operations.health import LATEST_MARK
from tidemill.names import CANARY_PREFIX, CANARY_TYPE, JOB_KEY, Env
from tidemill.system import clock

#: A day has 1,440 canaries of each lane, and an old one shows nothing.
KEPT_DAYS = 1 / 24


class Canary(BaseModel):
    #: A submission may name a less urgent lane than its type does, and a run does not see it.
    lane: Lane


@job_type(CANARY_TYPE, payload=Canary, lane=Lane.CRITICAL, retention_days=KEPT_DAYS)
def canary(payload: Canary, run: Run) -> Done | Cancelled:
    """It counts and marks its lane, unless it is old, as after a pause, or of another caller.

    An old one says nothing of the present. Any caller may submit one, also with a delay.
    """
    if run.tenant != setting(Env.CANARY) or clock.now() - run.submitted_at >= LATEST_MARK:
        return Cancelled()
    return Done({"lane": payload.lane}, writes=[_effect(payload.lane, run)])


def _effect(lane: Lane, run: Run) -> TransactWrite:
    """One item of each lane names the last canary, when it was submitted, and counts all of them."""
    return {
        "Update": {
            "TableName": setting(Env.JOBS_TABLE),
            "Key": {JOB_KEY: {"S": f"{CANARY_PREFIX}{lane}"}},
            "UpdateExpression": "SET #last = :id, #submitted_at = :submitted_at ADD #count :one",
            # Closes the race of two runs of one canary: the count rises once.
            "ConditionExpression": "attribute_not_exists(#last) OR #last <> :id",
            "ExpressionAttributeNames": {"#last": "last", "#submitted_at": "submitted_at", "#count": "count"},
            "ExpressionAttributeValues": {
                ":id": {"S": run.job_id},
                ":submitted_at": {"S": run.submitted_at.isoformat(timespec="seconds")},
                ":one": {"N": "1"},
            },
        }
    }
