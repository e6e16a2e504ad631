"""The strings and numbers that infrastructure and runtime share, and nothing else."""

from enum import StrEnum
from typing import Final


class Lane(StrEnum):
    """A queue, its dead-letter queue and its workers; the most urgent first.

    A submission may name a lane that is less urgent than that of its type.
    """

    CRITICAL = "critical"
    DEFAULT = "default"
    BULK = "bulk"


class Env(StrEnum):
    """Environment variables of the functions. The stack of a function sets them."""

    STAGE = "TIDEMILL_STAGE"
    #: The tenant of the canaries; absent without them.
    CANARY = "TIDEMILL_CANARY"
    JOBS_TABLE = "TIDEMILL_JOBS_TABLE"
    #: How often the jobs were restored from a backup; absent for never. Messages of other epochs are not acted on.
    EPOCH = "TIDEMILL_EPOCH"
    #: JSON object with the members of `powertools.app_config.Place`. Absent where the jobs table is the source.
    APP_CONFIG = "TIDEMILL_APP_CONFIG"
    #: JSON object: lane name to `{"queue": url, "dead_letters": url}`.
    LANES = "TIDEMILL_LANES"
    #: Comma-separated packages that hold job types, e.g. `functions.jobs`.
    JOB_PACKAGES = "TIDEMILL_JOB_PACKAGES"
    #: Seconds that one attempt may take; less than the function's timeout by the settle reserve.
    JOB_TIMEOUT_SECONDS = "TIDEMILL_JOB_TIMEOUT_SECONDS"
    #: With `false`, a worker leaves the next job of a group to its message. Used by benchmarks only.
    FOLLOW_GROUPS = "TIDEMILL_FOLLOW_GROUPS"
    RETENTION_DAYS = "TIDEMILL_RETENTION_DAYS"
    #: `true` where every job is written to the listing index; empty where it is not.
    LISTING = "TIDEMILL_LISTING"
    #: Number of index partitions over which writes spread the jobs of one tenant, or of one kind.
    INDEX_SHARDS = "TIDEMILL_INDEX_SHARDS"
    #: Comma-separated lanes with first messages at once; absent where none has them. `LANES` of submit has these lanes.
    FIRST_MESSAGE_LANES = "TIDEMILL_FIRST_MESSAGE_LANES"
    #: Seconds within which a job of the lane `critical` should start; absent where nothing governs the strain.
    FOREGROUND_TARGET = "TIDEMILL_FOREGROUND_TARGET_SECONDS"
    #: Bucket of the payloads that are too large for the table, and of the files that jobs write for download.
    FILES_BUCKET = "TIDEMILL_FILES_BUCKET"
    ARCHIVE_BUCKET = "TIDEMILL_ARCHIVE_BUCKET"
    #: ARN of the secret that signs the cursors of listings.
    CURSOR_KEY_SECRET = "TIDEMILL_CURSOR_KEY_SECRET"  # noqa: S105 - the name of a variable
    #: JSON object: issuer and audience of the callers' tokens; empty if callers sign with SigV4.
    JWT = "TIDEMILL_JWT"
    #: `true` where log lines contain no messages and tracebacks of exceptions; absent where they do.
    WITHHOLD_EXCEPTION_TEXT = "TIDEMILL_WITHHOLD_EXCEPTION_TEXT"
    #: The version of the deployed code: the beginning of the digest of its asset. Log lines of runs show it.
    CODE_VERSION = "TIDEMILL_CODE_VERSION"
    #: The part of all jobs, from 0 to 1, whose lines `accepted` and `dispatched` are written; absent for all.
    LOG_SAMPLE_RATE = "TIDEMILL_LOG_SAMPLE_RATE"
    #: Bytes of the largest payload in an item of the table; absent for the default. `true` where they are compressed.
    PAYLOAD_ITEM_BYTES = "TIDEMILL_PAYLOAD_ITEM_BYTES"
    COMPRESS_PAYLOADS = "TIDEMILL_COMPRESS_PAYLOADS"
    #: The number of job types that have metrics of their own; absent where no type has any. Read by work.
    METRICS_BY_TYPE = "TIDEMILL_METRICS_BY_TYPE"
    #: `true` where functions emit spans through OpenTelemetry; absent where they do not.
    TRACING = "TIDEMILL_TRACING"
    #: Seconds by which a live job must be overdue before reconcile repairs it.
    RECONCILE_LIMIT_SECONDS = "TIDEMILL_RECONCILE_LIMIT_SECONDS"
    #: Read units a second that reconcile may take from the jobs table.
    RECONCILE_READ_UNITS = "TIDEMILL_RECONCILE_READ_UNITS"
    #: The name of the stack. Reconcile compares its resources with its template; absent: with nothing.
    STACK = "TIDEMILL_STACK"
    #: Id and URL of the API of jobs, which the canary calls; absent where callers send tokens.
    API_ID = "TIDEMILL_API_ID"
    #: The variables of the function of a source: its name in the code, the tenant of its events, and the URLs of its
    #: queues.
    SOURCE = "TIDEMILL_SOURCE"
    SOURCE_TENANT = "TIDEMILL_SOURCE_TENANT"
    SOURCE_QUEUE = "TIDEMILL_SOURCE_QUEUE"
    SOURCE_DEAD_LETTERS = "TIDEMILL_SOURCE_DEAD_LETTERS"
    #: The bus to which a sink sends events. Read by work.
    EVENT_BUS = "TIDEMILL_EVENT_BUS"
    API_URL = "TIDEMILL_API_URL"


class Output(StrEnum):
    """Outputs of the deployed stacks. The command line and the demo find the resources through them."""

    API_ID = "ApiId"
    API_URL = "ApiUrl"
    JOBS_TABLE = "JobsTable"
    #: The value of `Env.EPOCH`, always present.
    EPOCH = "Epoch"
    #: The value of `Env.APP_CONFIG`; absent where that is.
    APP_CONFIG = "AppConfig"
    FILES_BUCKET = "FilesBucket"
    #: JSON, as `Env.LANES`.
    LANES = "Lanes"
    #: JSON object: periodic job type to its schedule expression.
    SCHEDULES = "Schedules"
    #: Days for which the stage keeps a finished job whose type sets no retention.
    RETENTION_DAYS = "RetentionDays"
    #: Days for which the record of an operator's command is kept.
    AUDIT_RETENTION_DAYS = "AuditRetentionDays"
    #: JSON object: function verb (`work`, `publish`, …) to the deployed function's name.
    FUNCTIONS = "Functions"
    #: JSON object: the keys of `FUNCTIONS` to the names of the functions' log groups.
    LOG_GROUPS = "LogGroups"
    #: JSON object: the keys of `FUNCTIONS` to the versions that the last deployment made the live ones.
    VERSIONS = "Versions"
    #: The topics of pages and of tickets.
    ALARM_TOPIC = "AlarmTopic"
    TICKET_TOPIC = "TicketTopic"
    DASHBOARD = "Dashboard"


#: The alias of every function. Routes, mappings, schedules and topics call it, and not the function.
LIVE_ALIAS: Final = "live"

#: In the metadata of a template: an existing table that the stack adopts, in the form of a resource. CloudFormation
#: leaves it alone; drift and repair compare it.
ADOPTED_TABLE: Final = "TidemillAdoptedTable"

#: In the description of an alarm: after its meaning, and before the link to its heading in the runbook.
ALARM_ADVICE: Final = " What to do: "


class Tag(StrEnum):
    """Tags on every resource; the command line finds the stack through them."""

    APP = "tidemill:app"
    STAGE = "tidemill:stage"


#: The value of `Tag.APP`.
APP: Final = "tidemill"

# The jobs table. One item is one job.
JOB_KEY: Final = "pk"
TTL_ATTRIBUTE: Final = "expires_at"
STATE_ATTRIBUTE: Final = "state"
#: States in which a job may need a message. `cdk/events/stream_settings.py` has the patterns of what publish gets.
DISPATCHED_STATES: Final = ("queued", "retrying", "dead")
#: Only jobs of a group have it. The stream also sends publish their other ends, since the next job may start, and those
#: that begin to wait, since the group may have become idle at that moment.
GROUP_ATTRIBUTE: Final = "group"
GROUP_STATES: Final = ("waiting", "succeeded", "cancelled", "expired")
#: States that only a redrive or a cancel of a dead job leaves. A job is removed only in one of them.
TERMINAL_STATES: Final = ("succeeded", "dead", "cancelled", "expired")
#: Only jobs whose payload is stored elsewhere have it. The stream sends publish the removal of such a job.
PAYLOAD_LOCATION_ATTRIBUTE: Final = "payload_at"
#: Only jobs have it that block their group once they are dead. The stream sends publish the removal of such a dead job.
BLOCKS_ATTRIBUTE: Final = "blocks"
#: Only debounced jobs have it. The stream sends publish the changes of those whose payload is stored elsewhere, since
#: another one may have replaced it.
DEBOUNCE_ATTRIBUTE: Final = "burst"
#: States in which such a job may take a payload, and which are not in `DISPATCHED_STATES`.
REPLACEABLE_STATES: Final = ("scheduled", "parked")
#: Sparse index over what waits for the scheduler, a release or an operator: scheduled, parked and dead jobs, owed work,
#: and the lines that parked jobs may wait in.
ATTENTION_INDEX: Final = "attention"
ATTENTION_KEY: Final = "attention"
ATTENTION_SORT_KEY: Final = "attention_at"
#: Index over all jobs of a tenant by day of creation, if the stage enables it. Written once, at creation.
LISTING_INDEX: Final = "listing"
LISTING_KEY: Final = "listing"
LISTING_SORT_KEY: Final = "created_at"
#: By default a write spreads the jobs of one tenant, or of one kind, over this many partitions of an index. Each takes
#: 1,000 writes a second, and a throttled index throttles its table:
#: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html
INDEX_SHARDS: Final = 4
#: Every read queries this many partitions, so that no setting of a writer can hide a job. A partition that is empty
#: costs half a read unit. One tenant can create 16,000 jobs a second, more than a table of the default quota accepts:
#: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ServiceQuotas.html
LARGEST_INDEX_SHARDS: Final = 16

#: Prefix of the key of a payload that has an item of its own; a JSON list of tenant, job id and location follows. A
#: tenant never begins with it, so it is never the prefix of a job's key.
PAYLOAD_PREFIX: Final = "!payload#"
OWED_PREFIX: Final = "!owed#"  #: The same, of an item of owed work; a JSON list of its kind and tenant begins it.
DEBOUNCE_PREFIX: Final = "!burst#"  #: The same, of the item that leads from a debounce key to its job.
#: The key of the item with the runtime configuration. No tenant begins with it, so no item key of a job does.
CONFIGURATION_KEY: Final = "!config"
#: Begins the keys of the counts of submissions, for quotas.
QUOTA_KEY: Final = "!quota#"
#: The item of the governor.
STRAIN_KEY: Final = "!strain"

# The prefixes of keys in the files bucket.
PAYLOADS_PREFIX: Final = "payloads/"
EXPORTS_PREFIX: Final = "exports/"
#: Prefix of the object keys in the bucket of the archive.
ARCHIVE_PREFIX: Final = "jobs/"

#: The tenant of periodic jobs. It cannot equal a caller's tenant, which has at least two parts.
SCHEDULE_TENANT: Final = "schedule"
# The members of the event that EventBridge Scheduler sends to the function `tick` for each periodic type.
TICK_TYPE: Final = "type"
TICK_SCHEDULED_AT: Final = "scheduled_at"
#: Only in the event of an operator who asks for a run now.
TICK_REQUESTED: Final = "requested"
#: Only in the event of an operator who asks whether a payload fits the type: the payload. Tick then submits nothing.
TICK_PAYLOAD: Final = "payload"
#: EventBridge Scheduler replaces it with the scheduled time:
#: https://docs.aws.amazon.com/scheduler/latest/UserGuide/managing-schedule-context-attributes.html
SCHEDULED_TIME: Final = "<aws.scheduler.scheduled-time>"

#: The job type that is submitted to each lane every minute, to show that jobs get through.
CANARY_TYPE: Final = "tidemill.canary"
#: The package with this type, which every stage with a canary adds to its own.
CANARY_PACKAGE: Final = "tidemill.canary"
#: The tenant of the canaries of a stage whose callers send tokens. It cannot equal a caller's tenant.
CANARY_TENANT: Final = "canary"
#: Prefix of the key of the item in which the canary of a lane takes effect; the lane follows. No tenant begins with it.
CANARY_PREFIX: Final = "!canary#"
CANARY_INTERVAL_SECONDS: Final = 60

#: The job type of `tidemill migrate`, its package, which every stage adds to its own, and the tenant of its jobs.
MIGRATION_TYPE: Final = "tidemill.migration"
MIGRATION_PACKAGE: Final = "tidemill.migration"
#: It cannot equal a caller's tenant, so no caller can submit such a job.
MIGRATION_TENANT: Final = "migration"

#: The job type of an event, which creates the jobs of its consumers, and the package that every stage adds to its own.
EVENT_TYPE: Final = "tidemill.event"
EVENT_PACKAGE: Final = "tidemill.fan_out"

#: The job type of `tidemill replay`, in the same package, and the tenant of its jobs.
REPLAY_TYPE: Final = "tidemill.replay"
#: It cannot equal a caller's tenant, so no caller can replay events.
REPLAY_TENANT: Final = "replay"

#: The job type of a batch, which waits for its jobs, and the package that every stage adds to its own.
BATCH_TYPE: Final = "tidemill.batch"
BATCH_PACKAGE: Final = "tidemill.batch"
#: The same of a flow, which looks after its nodes.
FLOW_TYPE: Final = "tidemill.flow"
FLOW_PACKAGE: Final = "tidemill.flow"
#: The prefix of the types above, whose payloads the engine writes after checks that their models cannot make.
BUILT_IN_PREFIX: Final = "tidemill."

# The members of the event that EventBridge Scheduler sends to each of the parallel calls of `wake`: its number, from 0,
# and the number of calls. Without them, a call does the work of all.
WAKE_PART: Final = "part"
WAKE_PARTS: Final = "parts"

#: Largest `max_attempts` of a job type. The receive count of the lanes follows from it.
LARGEST_MAX_ATTEMPTS: Final = 25
#: The time, in seconds, that a worker keeps back to settle an attempt that used its whole time. It starts no attempt
#: that would not leave this much. Job timeout plus reserve is less than the function's timeout.
SETTLE_RESERVE_SECONDS: Final = 0.5
#: The largest payload that is an item of the table, by default. A larger one is a file, which is slower to write and to
#: read, but costs the same at any size. An item of this size costs 64 writes, and 64 more when it is deleted.
PAYLOAD_ITEM_BYTES: Final = 64 * 1024
#: Largest body of a submission, in bytes.
LARGEST_BODY_BYTES: Final = 256 * 1024
#: Largest event of a synchronous invocation:
#: https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
LARGEST_EVENT_BYTES: Final = 6 * 1024 * 1024
#: The rest of an event of an HTTP API. Request line and headers have 10,240 bytes, which the event may hold twice and
#: escaped: https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-quotas.html
EVENT_RESERVE_BYTES: Final = 128 * 1024
#: The body is one JSON string of the event. In a JSON string, a byte takes at most six bytes: `\u007f`. AWS does not
#: document which characters API Gateway escapes, so this holds for each: https://www.rfc-editor.org/rfc/rfc8259#section-7
LARGEST_ESCAPE: Final = 6
#: Largest body of a batch of submissions, in bytes, and its largest number of submissions. A larger body may not fit
#: into an event. API Gateway would then refuse it without a problem document.
LARGEST_BATCH_BODY_BYTES: Final = (LARGEST_EVENT_BYTES - EVENT_RESERVE_BYTES) // LARGEST_ESCAPE
LARGEST_BATCH: Final = 100
#: Seconds between two wakes of scheduled jobs, and how many seconds each wake looks ahead. The second number is larger,
#: so that a job that is due between two wakes is already on its lane.
WAKE_INTERVAL_SECONDS: Final = 60
WAKE_WINDOW_SECONDS: Final = 5 * 60
#: Seconds between two scheduled calls of reconcile. Each continues the open pass over the table, or returns at once.
RECONCILE_INTERVAL_SECONDS: Final = 5 * 60
#: A member of the event of those calls. Any other event, such as an alarm's, asks for a new pass.
CONTINUE: Final = "continue"
#: Member of an event of reconcile: it only answers how the resources of the stack differ from the template.
COMPARE: Final = "compare"
#: Default of the read units a second that one pass over the table takes.
RECONCILE_READ_UNITS: Final = 1000

#: The value of the dimension `type` for each type beyond that number.
OTHER_TYPES: Final = "other"
#: For how long the record of an operator's command is kept, unless the stage says otherwise.
AUDIT_RETENTION_DAYS: Final = 365
