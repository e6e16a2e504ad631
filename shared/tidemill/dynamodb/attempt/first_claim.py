"""The claim of a job that has not begun, as a request in which every new value is known before the call."""

from datetime import datetime

from tidemill.aws.attribute_values import milliseconds, number, text
from tidemill.domain.dispatch.job_message import FirstRun, Reference
from tidemill.domain.history import Transition, Why
from tidemill.domain.states import State
from tidemill.dynamodb.document import HISTORY_ATTRIBUTE
from tidemill.dynamodb.history_entries import history
from tidemill.dynamodb.job_writes import claimed
from tidemill.dynamodb.update_requests import Request, update_job


def first_claim(
    reference: Reference, first_run: FirstRun, *, token: str, now: datetime, lease_end: datetime, worker: str
) -> Request:
    """Writes what `job_writes.claim` writes, under a condition that is never weaker."""
    entry = Transition(at=now, state=State.RUNNING, cause=Why.CLAIMED, worker=worker)
    return update_job(
        reference.tenant,
        reference.job_id,
        sets={
            **claimed(token, now=now, lease_end=lease_end),
            "ready_at": milliseconds(first_run.due),
            "attempt": number(1),
            "open_runs": number(1),
            HISTORY_ATTRIBUTE: history([entry]),
        },
        conditions=[
            # A late or duplicate message of an earlier dispatch must not start another run.
            "#generation = :generation",
            # Not during another worker's lease, not when terminal, and not at another time than the message says.
            "#due = :due",
            # A later job under the same key may be of a type that is claimed alone.
            "#type = :type",
            # The document of an older version may have had runs, and no history.
            "#attempt = :no_attempt",
            # Written since its submission: woken, nudged or claimed. Its history must be kept.
            f"attribute_not_exists(#{HISTORY_ATTRIBUTE})",
        ],
        names=["generation", "due", "type", "attempt", HISTORY_ATTRIBUTE],
        values={
            ":generation": number(reference.generation),
            ":due": milliseconds(first_run.due),
            ":type": text(first_run.type),
            ":no_attempt": number(0),
        },
    )
