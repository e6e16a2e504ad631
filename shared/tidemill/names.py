"""The strings that infrastructure and runtime share: all that `stacks` may import, and nothing else lives here."""

from enum import StrEnum
from typing import Final


class Lane(StrEnum):
    """A queue, its dead-letter queue and its workers; the most urgent first. A submission may only lower its type's."""

    CRITICAL = "critical"
    DEFAULT = "default"
    BULK = "bulk"


class Env(StrEnum):
    """Environment variables of the functions; each is set by its construct in `stacks`."""

    STAGE = "TIDEMILL_STAGE"
    JOBS_TABLE = "TIDEMILL_JOBS_TABLE"
    #: JSON object: lane name to `{"queue": url, "dead_letters": url}`. Read by publish.
    LANES = "TIDEMILL_LANES"
    #: Comma-separated packages that hold job types, e.g. `functions.jobs`.
    JOB_PACKAGES = "TIDEMILL_JOB_PACKAGES"
    #: Seconds that one attempt may take; less than the function's timeout by the settle reserve.
    JOB_TIMEOUT_SECONDS = "TIDEMILL_JOB_TIMEOUT_SECONDS"
    #: `false` has a worker leave the next job of a group to its message. Set by nobody but who measures.
    FOLLOW_GROUPS = "TIDEMILL_FOLLOW_GROUPS"
    RETENTION_DAYS = "TIDEMILL_RETENTION_DAYS"
    #: `true` where every job is written to the listing index; empty where it is not.
    LISTING = "TIDEMILL_LISTING"
    #: Bucket of the payloads that are too large for the table, and of what jobs write for people to fetch.
    FILES_BUCKET = "TIDEMILL_FILES_BUCKET"
    #: ARN of the secret that signs the cursors of listings.
    CURSOR_KEY_SECRET = "TIDEMILL_CURSOR_KEY_SECRET"  # noqa: S105 - the name of a variable
    #: JSON object: issuer and audience of the tokens that callers bring; empty where callers sign with SigV4.
    JWT = "TIDEMILL_JWT"
    #: Seconds by which a live job must be overdue before reconcile looks after it.
    RECONCILE_LIMIT_SECONDS = "TIDEMILL_RECONCILE_LIMIT_SECONDS"


class Output(StrEnum):
    """Outputs of the deployed stacks; the command line and the demo find everything by these."""

    API_ID = "ApiId"
    API_URL = "ApiUrl"
    JOBS_TABLE = "JobsTable"
    #: JSON, as `Env.LANES`.
    LANES = "Lanes"
    #: For how long the stage keeps a finished job whose type says nothing else.
    RETENTION_DAYS = "RetentionDays"
    #: JSON object: function verb (`work`, `publish`, …) to the deployed function's name.
    FUNCTIONS = "Functions"
    ALARM_TOPIC = "AlarmTopic"
    DASHBOARD = "Dashboard"


class Tag(StrEnum):
    """Tags on every resource; the command line finds the stack by them."""

    APP = "tidemill:app"
    STAGE = "tidemill:stage"


#: The value of `Tag.APP`.
APP: Final = "tidemill"

# The jobs table. One item is one job.
JOB_KEY: Final = "pk"
TTL_ATTRIBUTE: Final = "expires_at"
STATE_ATTRIBUTE: Final = "state"
#: States in which a job may owe a message: the stream tells publish of no other.
DISPATCHED_STATES: Final = ("queued", "retrying", "dead")
#: Only jobs of a group have it: of those, publish is told of the other ends too, since the next may go on.
GROUP_ATTRIBUTE: Final = "group"
ENDED_STATES: Final = ("succeeded", "cancelled")
#: States from which nothing but a redrive leads: only a job in one of them is ever removed.
TERMINAL_STATES: Final = ("succeeded", "dead", "cancelled")
#: Only jobs whose payload is stored elsewhere have it: publish is told when such a job is gone.
PAYLOAD_LOCATION_ATTRIBUTE: Final = "payload_at"
#: Sparse index over the jobs that wait for a clock or a person: scheduled and dead ones.
ATTENTION_INDEX: Final = "attention"
ATTENTION_KEY: Final = "attention"
ATTENTION_SORT_KEY: Final = "attention_at"
#: The jobs of each kind spread over this many index partitions: a throttled index partition would throttle the table.
ATTENTION_SHARDS: Final = 4
#: Index over all jobs of a tenant by day of creation, where the stage asks for one. Written once, at creation.
LISTING_INDEX: Final = "listing"
LISTING_KEY: Final = "listing"
LISTING_SORT_KEY: Final = "created_at"
#: The jobs of a tenant spread over this many index partitions, each of which takes 1,000 new ones a second.
LISTING_SHARDS: Final = 4

# The files bucket: what its keys begin with.
PAYLOADS_PREFIX: Final = "payloads/"
EXPORTS_PREFIX: Final = "exports/"

# What the clock says to the function `tick`, for each periodic type.
TICK_TYPE: Final = "type"
TICK_SCHEDULED_AT: Final = "scheduled_at"
#: EventBridge Scheduler puts the time in its place:
#: https://docs.aws.amazon.com/scheduler/latest/UserGuide/managing-schedule-context-attributes.html
SCHEDULED_TIME: Final = "<aws.scheduler.scheduled-time>"

#: Largest `max_attempts` that a job type may ask for. The lanes derive their receive count from it.
LARGEST_MAX_ATTEMPTS: Final = 25
#: The time, in seconds, that a worker keeps back to settle an attempt that used its whole time. It starts no attempt
#: that would not leave this much. Job timeout plus reserve is less than the function's timeout.
SETTLE_RESERVE_SECONDS: Final = 0.5
#: Largest body of a submission, in bytes.
LARGEST_BODY_BYTES: Final = 256 * 1024
#: Largest body of a batch of submissions, in bytes, and the most that it may hold.
LARGEST_BATCH_BODY_BYTES: Final = 4 * 1024 * 1024
LARGEST_BATCH: Final = 100
#: How often the clock that wakes scheduled jobs ticks, in seconds, and how far ahead each tick looks: more than once
#: the interval, so that a job whose time comes between two ticks is on its lane before.
WAKE_INTERVAL_SECONDS: Final = 60
WAKE_WINDOW_SECONDS: Final = 5 * 60

METRIC_NAMESPACE: Final = "Tidemill"


class Metric(StrEnum):
    """Our own metrics, in `METRIC_NAMESPACE`, dimensions `stage` and `lane`."""

    SUBMITTED = "JobsSubmitted"
    REPLAYED = "JobsReplayed"
    #: Submissions that the store did not take, and whose caller went on without them.
    NOT_ACCEPTED = "JobsNotAccepted"
    DISPATCHED = "JobsDispatched"
    SUCCEEDED = "JobsSucceeded"
    RETRIED = "JobsRetried"
    DEAD = "JobsDead"
    #: Runs given back because other transactions stood in the way of their settle.
    RELEASED = "JobsReleased"
    CANCELLED = "JobsCancelled"
    #: Runs that ended as snoozed or continued, and those that their key's limits held back.
    SNOOZED = "JobsSnoozed"
    CONTINUED = "JobsContinued"
    HELD = "JobsHeld"
    #: Scheduled jobs whose time has come, put on their lanes by the clock.
    WOKEN = "JobsWoken"
    #: Groups whose next job was put on its lane.
    ADVANCED = "GroupsAdvanced"
    #: Records of the stream that were given up, so that they hold up no others: reconcile is called for them.
    PASSED_OVER = "RecordsPassedOver"
    #: Jobs past their time, and groups, that wake or reconcile could not read, each time that they met them.
    UNREADABLE = "ItemsUnreadable"
    #: Overdue jobs that reconcile had dispatched once more, and those that it gave up.
    NUDGED = "JobsNudged"
    UNDELIVERABLE = "JobsUndeliverable"
    PUT_BACK = "MessagesPutBack"
    #: Messages put back because a claim or settle failed: the store did not answer, or refused the worker.
    UNAVAILABLE = "StoreUnavailable"
    DROPPED = "MessagesDropped"
    ATTEMPT_DURATION = "AttemptDuration"
    #: Milliseconds from `due` to the claim.
    START_LATENCY = "StartLatency"
