"""The strings that infrastructure and runtime share: all that `stacks` may import, and nothing else lives here."""

from enum import StrEnum
from typing import Final


class Lane(StrEnum):
    """A queue, its dead-letter queue and its workers."""

    DEFAULT = "default"


class Env(StrEnum):
    """Environment variables of the functions; each is set by its construct in `stacks`."""

    STAGE = "MILLRACE_STAGE"
    JOBS_TABLE = "MILLRACE_JOBS_TABLE"
    #: JSON object: lane name to `{"queue": url, "letters": url}`. Read by publish.
    LANES = "MILLRACE_LANES"
    #: Comma-separated packages that hold job types, e.g. `functions.jobs`.
    JOB_PACKAGES = "MILLRACE_JOB_PACKAGES"
    #: Seconds that one attempt may take; less than the function's timeout by the margin.
    JOB_TIMEOUT_SECONDS = "MILLRACE_JOB_TIMEOUT_SECONDS"
    RETENTION_DAYS = "MILLRACE_RETENTION_DAYS"
    LINKS_TABLE = "MILLRACE_LINKS_TABLE"
    CLICKS_TABLE = "MILLRACE_CLICKS_TABLE"
    #: ARN of the secret that keys the hash of a client's address.
    ADDRESS_KEY_SECRET = "MILLRACE_ADDRESS_KEY_SECRET"  # noqa: S105 - the name of a variable
    #: How many proxies in front of the API may be believed about `X-Forwarded-For`.
    TRUSTED_PROXY_HOPS = "MILLRACE_TRUSTED_PROXY_HOPS"
    #: Path of a MaxMind database inside the asset; empty for the database that geoip2fast brings.
    GEOIP_DATABASE = "MILLRACE_GEOIP_DATABASE"


class Output(StrEnum):
    """Outputs of the deployed stacks; the command line and the demo find everything by these."""

    API_ID = "ApiId"
    API_URL = "ApiUrl"
    JOBS_TABLE = "JobsTable"
    #: JSON, as `Env.LANES`.
    LANES = "Lanes"
    #: JSON object: function verb (`work`, `publish`, …) to the deployed function's name.
    FUNCTIONS = "Functions"
    ALARM_TOPIC = "AlarmTopic"
    DASHBOARD = "Dashboard"
    SHORTENER_API_ID = "ShortenerApiId"
    SHORTENER_API_URL = "ShortenerApiUrl"


class Tag(StrEnum):
    """Tags on every resource; the command line finds the stack by them."""

    APP = "millrace:app"
    STAGE = "millrace:stage"


#: The value of `Tag.APP`.
APP: Final = "millrace"

# The jobs table. One item is one job.
JOB_KEY: Final = "pk"
TTL_ATTRIBUTE: Final = "expires_at"
STATE_ATTRIBUTE: Final = "state"
#: States in which a job may owe a message: the stream tells publish of no other.
DISPATCHED_STATES: Final = ("queued", "retrying", "dead")
#: Sparse index over the jobs that wait for a clock or a person: scheduled and dead ones.
ATTENTION_INDEX: Final = "attention"
ATTENTION_KEY: Final = "attention"
ATTENTION_SORT_KEY: Final = "attention_at"
#: Dead jobs spread over this many index partitions: a throttled index partition would throttle the table.
ATTENTION_SHARDS: Final = 4

# The shortener's tables.
LINK_KEY: Final = "code"
CLICK_KEY: Final = "pk"
CLICK_SORT_KEY: Final = "sk"

#: Largest `max_attempts` that a job type may ask for. The lanes derive their receive count from it.
LARGEST_MAX_ATTEMPTS: Final = 25
#: What a worker keeps back, in seconds, to settle an attempt that used its whole time; it starts none that would not
#: leave this much. Job timeout plus margin is less than the function's timeout.
TIMEOUT_MARGIN_SECONDS: Final = 0.5
#: Largest body of a submission, in bytes.
LARGEST_BODY_BYTES: Final = 256 * 1024

METRIC_NAMESPACE: Final = "Millrace"


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
    PUT_BACK = "MessagesPutBack"
    #: Messages put back because a claim or settle failed: the store did not answer, or refused the worker.
    UNAVAILABLE = "StoreUnavailable"
    DROPPED = "MessagesDropped"
    ATTEMPT_DURATION = "AttemptDuration"
    #: Milliseconds from `due` to the claim.
    START_LATENCY = "StartLatency"
