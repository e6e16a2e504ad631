"""The names of our own metrics in CloudWatch. docs/reference/metrics.md has their units and meanings."""

from enum import StrEnum
from typing import Final

METRIC_NAMESPACE: Final = "Tidemill"


class Metric(StrEnum):
    """Our own metrics, in `METRIC_NAMESPACE`, dimensions `stage` and `lane`: see docs/reference/metrics.md."""

    #: Over HTTP, and by handlers, schedules and functions that log what they submit.
    SUBMITTED = "JobsSubmitted"
    ADDED = "JobsAdded"
    REPLAYED = "JobsReplayed"
    #: Records of a source that were published before with other data, and make no second event.
    RECORDS_CHANGED = "RecordsChanged"
    #: The store did not accept them, and their caller continued without them.
    NOT_ACCEPTED = "JobsNotAccepted"
    #: Over HTTP, alone or in a batch, and answered with 5xx by no decision. The default lane counts those of all lanes.
    #: A function that crashes or is throttled counts none.
    SUBMISSIONS_FAILED = "SubmissionsFailed"
    #: In a batch request, and answered with a status from 400 to 499. Counted in the same lane.
    ITEMS_REFUSED = "BatchItemsRefused"
    #: Refused or deferred by a decision: under strain, during a pause, and above a quota. Counted in the same lane.
    SUBMISSIONS_SHED = "SubmissionsShed"
    SUBMISSIONS_DEFERRED = "SubmissionsDeferred"
    SUBMISSIONS_PAUSED = "SubmissionsPaused"
    SUBMISSIONS_OVER_QUOTA = "SubmissionsOverQuota"
    SUCCEEDED = "JobsSucceeded"
    RETRIED = "JobsRetried"
    DEAD = "JobsDead"
    #: Jobs that died without intent: without those that gave up or whose deadline passed.
    FAILED = "JobsFailed"
    #: Runs released because other transactions conflicted with their settle.
    RELEASED = "JobsReleased"
    CANCELLED = "JobsCancelled"
    #: Jobs that were too old to be of use when a run would have begun.
    EXPIRED = "JobsExpired"
    #: Runs that ended so, and runs that were held back for a time.
    SNOOZED = "JobsSnoozed"
    CONTINUED = "JobsContinued"
    HELD = "JobsHeld"
    #: Jobs that were parked (a full limit, a pause, a type that is not loaded), and those that wake released.
    PARKED = "JobsParked"
    UNPARKED = "JobsUnparked"
    #: Decreases of an adaptive concurrency.
    CONCURRENCY_LOWERED = "ConcurrencyLowered"
    #: The level of strain that the governor has set, each minute.
    STRAIN_LEVEL = "StrainLevel"
    #: How long workers rested because the strain slows their lane down.
    RESTED = "RestedSeconds"
    #: Scheduled jobs that wake put on their lanes because they are due.
    WOKEN = "JobsWoken"
    #: Groups whose next job was put on its lane.
    ADVANCED = "GroupsAdvanced"
    #: Owed work that failed for too long, counted at each try. Reconcile is called for it.
    PASSED_OVER = "RecordsPassedOver"
    #: Owed work: what publish stored for wake, because it could not do it at once.
    HANDED_OVER = "RecordsHandedOver"
    #: Jobs that are dispatched again because publish could not send their message.
    RESENT = "JobsResent"
    #: Due jobs and groups that wake or reconcile could not read, counted at each read.
    UNREADABLE = "ItemsUnreadable"
    #: Overdue jobs that reconcile dispatched again, and those that it gave up.
    NUDGED = "JobsNudged"
    UNDELIVERABLE = "JobsUndeliverable"
    #: Reconcile counts these of its pass over the table, at each run: the milliseconds since the last complete pass
    #: began, the items that the run read, and the segments that the pass has finished. The duration, in milliseconds,
    #: when a pass ends.
    RECONCILE_AGE = "ReconcileAge"
    RECONCILE_ITEMS = "ReconcileItems"
    RECONCILE_SEGMENTS = "ReconcileSegments"
    RECONCILE_DURATION = "ReconcileDuration"
    #: Event source mappings and schedules that differ from the template, or could not be compared with it.
    DRIFTED = "ResourcesDrifted"
    PUT_BACK = "MessagesPutBack"
    #: Messages whose claim the document refused; among them duplicates, whose job another run has, or had.
    REFUSED = "MessagesRefused"
    DUPLICATES = "MessagesDuplicate"
    #: Runs whose settle the document refused, since they had lost their lease.
    FENCED = "RunsFenced"
    #: Messages put back because a claim or settle failed: the store did not answer, or refused the worker.
    UNAVAILABLE = "StoreUnavailable"
    DROPPED = "MessagesDropped"
    #: Writes that DynamoDB throttled at their first try. They have no lane and are counted with the default one.
    WRITES_THROTTLED = "WritesThrottled"
    #: Handlers that ran beyond the end of their batch, so that their worker ended its process.
    STRAY_THREADS = "StrayThreads"
    #: Failed attempts by the kind of their error: `tidemill.domain.attempt.error_kinds`.
    TRANSIENT_ERRORS = "ErrorsTransient"
    PERMANENT_ERRORS = "ErrorsPermanent"
    TIMEOUT_ERRORS = "ErrorsTimeout"
    CRASH_ERRORS = "ErrorsCrash"
    OTHER_ERRORS = "ErrorsOther"
    #: A worker opened the breaker of a downstream.
    BREAKER_OPENED = "BreakersOpened"
    #: Seconds since the oldest outage of an open breaker began for which jobs wait, each minute. None if it is forced.
    BREAKER_OPEN = "BreakerOpenSeconds"
    #: Job files that a function could not load, counted when it starts and with each batch of a worker.
    BROKEN_JOB_FILES = "BrokenJobFiles"
    #: Milliseconds from the claim to the settle.
    ATTEMPT_DURATION = "AttemptDuration"
    #: Milliseconds from `due` to the claim.
    START_LATENCY = "StartLatency"
    #: Milliseconds from the submission, or from its `run_at`, to the success of the job.
    JOB_LATENCY = "JobLatency"
    #: The attempts of a job that succeeded, since its submission, redrive or continuation.
    ATTEMPTS = "AttemptsPerSuccess"
    #: Milliseconds from the first failure that a job remembers to its success.
    TIME_TO_RECOVER = "TimeToRecover"
    #: Milliseconds from a failed attempt to the time at which the next one may start.
    RETRY_INTERVAL = "RetryInterval"
    #: Milliseconds from the submission of a canary to its success. No other metric counts a canary that succeeds.
    CANARY_LATENCY = "CanaryLatency"


#: The metrics that count for each type, too, where `metrics_by_type` is set: outcomes, duration and start latency.
METRICS_BY_TYPE: Final = frozenset(
    {
        Metric.SUCCEEDED,
        Metric.RETRIED,
        Metric.DEAD,
        Metric.CANCELLED,
        Metric.EXPIRED,
        Metric.SNOOZED,
        Metric.CONTINUED,
        Metric.ATTEMPTS,
        Metric.ATTEMPT_DURATION,
        Metric.START_LATENCY,
    }
)
