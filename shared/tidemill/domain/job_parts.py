"""The parts of a job. Each is a frozen record whose default means that the job has nothing of it.

Holds, signals, steps, undos and flows keep their part in their own module. The store keeps all parts as attributes of
one flat item: see `dynamodb.document`.
"""

from datetime import datetime, timedelta

from msgspec import Struct


class StoredPayload(Struct, frozen=True, kw_only=True):
    """The payload, or where it is stored. One of the two is None."""

    #: JSON text in ASCII; validated at submission against the type's model.
    text: str | None = None
    #: Set if the payload is too large for the document.
    location: str | None = None


class GroupPlace(Struct, frozen=True, kw_only=True):
    """The place of a job in its group. Jobs of a group run one at a time, in the order accepted."""

    key: str | None = None
    #: The position in the group, from 1 without gaps. Set by insert, and again when the job re-enters at the tail.
    sequence: int | None = None
    #: Whether the group waits while this job is dead, until a redrive or a cancel.
    blocks: bool = False


class Progress(Struct, frozen=True, kw_only=True):
    """What the handler last saved while it ran. Cleared only by a redrive with another payload."""

    #: JSON text, to resume from.
    checkpoint: str | None = None
    #: When the handler last saved a checkpoint: the run was alive then.
    checkpoint_at: datetime | None = None
    #: In units that the handler chooses.
    done: int | None = None
    total: int | None = None


class CancelRequest(Struct, frozen=True, kw_only=True):
    """The audit entry of a cancel."""

    #: `OWNER`, or the ARN of the operator as STS verified it. If STS did not answer, `unverified:` and a local name.
    by: str
    #: Why, in the operator's words.
    reason: str = ""


class Cancel(Struct, frozen=True, kw_only=True):
    """The request to cancel the job. Set by cancel, cleared by redrive."""

    #: When a cancel was requested while the job ran.
    requested_at: datetime | None = None
    #: Who cancelled the job, or asked its run to end.
    request: CancelRequest | None = None


class Lease(Struct, frozen=True, kw_only=True):
    """The hold of one worker on the job, and the runs that its claims began."""

    #: The fence: a token fresh for each claim. Set by claim; cleared by each write that ends the run.
    owner: str | None = None
    #: The owner that settled last. Distinguishes an SDK retry of an applied settle from a lost lease.
    last_owner: str | None = None
    #: The value of `Job.due` when the job was last claimed. Set by claim.
    ready_at: datetime | None = None
    #: When the last run began. Set by claim.
    claimed_at: datetime | None = None
    #: How many runs have begun since one came back, the present one included. Raised by claim, cleared by settle and
    #: redrive. A hold, a release and an unclaim take their own claim back.
    open_runs: int = 0
    #: How often a run was released because of transaction conflicts. Raised by release, reset by redrive
    #: and by a run that goes on without a failure.
    releases: int = 0


class Lifetime(Struct, frozen=True, kw_only=True):
    """How long the job may begin, how long it is of use, and how long its document is kept."""

    #: No run begins after this time. Cleared by redrive.
    deadline: datetime | None = None
    #: After this time the job is too old to be of use: it expires instead of a run. Cleared by redrive.
    useful_until: datetime | None = None
    #: No second job with its unique key may exist before then, so the document is kept until then, in any state.
    unique_until: datetime | None = None
    #: How long to keep the terminal document; None for the retention time of the stage.
    retention: timedelta | None = None
    #: When the store may delete the document. Set only in a terminal state.
    expires_at: datetime | None = None

    def over(self, now: datetime) -> bool:
        """Whether the document is past its retention. DynamoDB deletes it days late, so readers hide it."""
        return self.expires_at is not None and self.expires_at <= now


class Nudges(Struct, frozen=True, kw_only=True):
    """The further dispatches of a generation that no worker claimed."""

    #: How many consecutive ones no claim followed. Cleared by claim, park and redrive.
    count: int = 0
    #: When a nudge last requested another dispatch of the same generation.
    last_at: datetime | None = None
