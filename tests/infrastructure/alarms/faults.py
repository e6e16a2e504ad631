"""Faults, each as a change of a healthy trace, and the alarm that must report it."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from tests.infrastructure.alarms.installation import (
    CONCURRENCY,
    of_api,
    of_function,
    of_queue,
    of_topic,
    ours,
    worker,
)
from tests.infrastructure.alarms.traces import DAY, HOUR, IDLE_QUEUE_MINUTES, Trace
from tidemill.local.alarms import MetricKey
from tidemill.metrics import Metric
from tidemill.names import Lane

#: The fault begins one second after the start of this minute, on a working day at noon. The metrics of the minute are
#: still healthy, which is the worst case: the fault just missed them.
BEGIN: Final = DAY + 12 * HOUR
#: Faults last this long, in minutes.
LASTS: Final = 13 * HOUR
MINUTES: Final = range(BEGIN + 1, BEGIN + LASTS)


#: Two faults that a test of several names.
NO_SUBMISSION: Final = "the API answers each request with 503"
DYING_TYPE: Final = "every third job of critical dies"


@dataclass(frozen=True, slots=True)
class Fault:
    #: Without characters that CDK drops.
    alarm: str
    what: str
    change: Callable[[Trace], None]


def _silent_canary(trace: Trace, lanes: Iterable[Lane] = Lane) -> None:
    for lane in lanes:
        trace.drop(ours("CanaryLatency", lane), after=BEGIN)


def _publisher_disabled(trace: Trace) -> None:
    """The stream is not read: nothing is dispatched, so nothing runs. Without a reader, the stream has no age."""
    _silent_canary(trace)
    for metric in ("Invocations", "IteratorAge"):
        trace.drop(of_function(metric, "Publisher"), after=BEGIN)
    for lane in Lane:
        for key in (
            ours(Metric.START_LATENCY, lane),
            ours(Metric.SUCCEEDED, lane),
            of_function("Invocations", worker(lane)),
        ):
            trace.drop(key, after=BEGIN)


def _worker_disabled(trace: Trace) -> None:
    lane = Lane.CRITICAL
    _silent_canary(trace, [lane])
    for key in (
        ours(Metric.START_LATENCY, lane),
        ours(Metric.SUCCEEDED, lane),
        of_function("Invocations", worker(lane)),
    ):
        trace.drop(key, after=BEGIN)
    queue = f"Lane{lane}Queue"
    trace.drop(of_queue("ApproximateAgeOfOldestMessage", queue), after=BEGIN)
    for waited, minute in enumerate(MINUTES):
        trace.put(of_queue("ApproximateNumberOfMessagesVisible", queue), minute, 6.0 * waited + 1)
        trace.put(of_queue("ApproximateAgeOfOldestMessage", queue), minute, 60.0 * waited)


def _slow_canary(trace: Trace) -> None:
    for minute in MINUTES:
        trace.put(ours("CanaryLatency", Lane.BULK), minute, 90_000.0)


def accept_none(trace: Trace) -> None:
    for lane in Lane:
        trace.drop(ours(Metric.SUBMITTED, lane), after=BEGIN)


def _fail_beside_a_fan_out(trace: Trace) -> None:
    """Two fifths of the submissions fail, and each of the others makes a hundred follow-up jobs."""
    for minute in MINUTES:
        trace.put(ours(Metric.ADDED, Lane.BULK), minute, 1_200.0)
    _every_minute(ours(Metric.SUBMISSIONS_FAILED), 8.0)(trace)


def _no_submission(trace: Trace) -> None:
    accept_none(trace)
    _every_minute(of_api(), 8.0)(trace)
    _every_minute(ours(Metric.SUBMISSIONS_FAILED), 8.0)(trace)


def refuse(trace: Trace) -> None:
    """Strain refuses most submissions. The metric of the API comes earlier or later than those of the engine."""
    for minute in MINUTES:
        trace.put(of_api(), minute, 50.0)
        trace.put(of_function("Invocations", "Submit"), minute, 50.0)
        trace.put(ours(Metric.SUBMISSIONS_SHED), minute, 50.0)


def _unreached_submit(trace: Trace) -> None:
    """The API may not invoke the function."""
    accept_none(trace)
    for metric in ("Invocations", "Errors", "Throttles"):
        trace.drop(of_function(metric, "Submit"), after=BEGIN)
    _every_minute(of_api(), 8.0)(trace)


def _crashing_submit(trace: Trace) -> None:
    accept_none(trace)
    _every_minute(of_api(), 8.0)(trace)
    _every_minute(of_function("Errors", "Submit"), 8.0)(trace)


def _throttled_submit(trace: Trace) -> None:
    accept_none(trace)
    _every_minute(of_api(), 8.0)(trace)
    _every_minute(of_function("Throttles", "Submit"), 8.0)(trace)


def _no_batch_item(trace: Trace) -> None:
    """All submissions come in batch requests, whose response is 200."""
    accept_none(trace)
    _every_minute(ours(Metric.SUBMISSIONS_FAILED), 40.0)(trace)


def _flood(trace: Trace) -> None:
    """One tenant submits a hundred critical jobs a minute, and from the second minute on each waits too long."""
    for minute in MINUTES:
        trace.put(ours(Metric.START_LATENCY, Lane.CRITICAL), minute, *([61_000.0] * (100 if minute > BEGIN + 2 else 0)))


def _dying_type(trace: Trace) -> None:
    """Every second job of the lane critical dies at its first attempt."""
    for minute in MINUTES:
        trace.put(ours(Metric.FAILED, Lane.CRITICAL), minute, 3.0)


def _scheduler_off(trace: Trace) -> None:
    _silent_canary(trace)
    for function in ("Wake", "Reconcile", "Tick"):
        trace.drop(of_function("Invocations", function), after=BEGIN)


def _reconcile_off(trace: Trace) -> None:
    trace.drop(of_function("Invocations", "Reconcile"), after=BEGIN)


def _slow_reconcile(trace: Trace) -> None:
    """The pass grows older than the catalogue allows at the first run after the begin."""
    for minute in MINUTES:
        if minute % 5 == 0:
            trace.put(ours(Metric.RECONCILE_AGE), minute, 60_000.0 * (40 * HOUR))


def _drift(trace: Trace) -> None:
    """Reconcile compares the mappings and schedules with the template every five minutes."""
    key = ours(Metric.DRIFTED)
    trace.drop(key, after=BEGIN)
    for minute in MINUTES:
        if minute % 5 == 0:
            trace.put(key, minute, 1.0)


def _repeated(lane: Lane) -> Callable[[Trace], None]:
    """Every job fails once before it succeeds."""

    def change(trace: Trace) -> None:
        key = ours(Metric.ATTEMPTS, lane)
        trace.drop(key, after=BEGIN)
        for minute in MINUTES:
            trace.put(key, minute, *([2.0] * 4))

    return change


def _some_fail(trace: Trace) -> None:
    """One of a hundred submissions fails, in small numbers that no fast burn shows."""
    for minute in MINUTES:
        trace.put(of_api(), minute, 0.3)
        trace.put(ours(Metric.SUBMISSIONS_FAILED), minute, 0.3)


def _age(lane: Lane) -> Callable[[Trace], None]:
    """The oldest message grows old, although the worker runs."""

    def change(trace: Trace) -> None:
        key = of_queue("ApproximateAgeOfOldestMessage", f"Lane{lane}Queue")
        for waited, minute in enumerate(MINUTES):
            trace.put(key, minute, 60.0 * waited)

    return change


def _every_minute(key: MetricKey, value: float) -> Callable[[Trace], None]:
    def change(trace: Trace) -> None:
        for minute in MINUTES:
            trace.put(key, minute, value)

    return change


def _once(key: MetricKey, value: float = 1.0) -> Callable[[Trace], None]:
    return lambda trace: trace.put(key, BEGIN + 1, value)


def _one_message(queue: str) -> Callable[[Trace], None]:
    """It stays, and a sweep hides it now and then. The queue was idle before."""

    def change(trace: Trace) -> None:
        for minute in MINUTES[IDLE_QUEUE_MINUTES:]:
            hidden = minute % 5 == 0
            trace.put(of_queue("ApproximateNumberOfMessagesVisible", queue), minute, 0.0 if hidden else 1.0)
            trace.put(of_queue("ApproximateNumberOfMessagesNotVisible", queue), minute, 1.0 if hidden else 0.0)

    return change


def _blocked_stream(reader: str) -> Callable[[Trace], None]:
    def change(trace: Trace) -> None:
        for waited, minute in enumerate(MINUTES):
            trace.put(of_function("IteratorAge", reader), minute, 60_000.0 * waited)

    return change


def _open_breaker(trace: Trace) -> None:
    for waited, minute in enumerate(MINUTES):
        trace.put(ours(Metric.BREAKER_OPEN), minute, 60.0 * waited)


def _unheard(trace: Trace) -> None:
    trace.put(of_topic("NumberOfMessagesPublished"), BEGIN + 1, 1.0)


PAGES: Final = [
    Fault("LateCanary", "the mapping of the publisher is disabled", _publisher_disabled),
    Fault("LateCanary", "the mapping of the worker of critical is disabled", _worker_disabled),
    Fault("LateCanary", "the path of bulk takes 90 s", _slow_canary),
    Fault("FailedSubmissions", NO_SUBMISSION, _no_submission),
    Fault("FailedSubmissions", "no submission of a batch request is decided", _no_batch_item),
    Fault("FailedSubmissions", "two fifths of the submissions fail, beside a large fan-out", _fail_beside_a_fan_out),
    Fault("FailedSubmissions", "the API may not invoke submit", _unreached_submit),
    Fault("FailedSubmissions", "submit crashes at each call", _crashing_submit),
    Fault("FailedSubmissions", "each call of submit is throttled", _throttled_submit),
    Fault("LateStarts", "a tenant floods critical", _flood),
    Fault("SilentScheduler", "the schedules are disabled", _scheduler_off),
    Fault("FailedJobs", DYING_TYPE, _dying_type),
    Fault("BrokenInvariant", "wake cannot read a document", _once(ours(Metric.UNREADABLE))),
    Fault("BrokenInvariant", "a job of bulk is undeliverable", _once(ours(Metric.UNDELIVERABLE, Lane.BULK))),
]
TICKETS: Final = [
    Fault("SlowBurn", "one submission in sixty fails", _some_fail),
    *(Fault(f"DeadJobs{lane}", f"a job of {lane} dies", _one_message(f"Lane{lane}Letters")) for lane in Lane),
    *(Fault(f"LateJobs{lane}", f"a message of {lane} is not taken", _age(lane)) for lane in Lane),
    Fault("IdleWorkercritical", "the mapping of the worker of critical is disabled", _worker_disabled),
    *(Fault(f"RepeatedRuns{lane}", f"every job of {lane} fails once", _repeated(lane)) for lane in Lane),
    Fault("StoreUnavailable", "the table refuses the workers", _every_minute(ours(Metric.UNAVAILABLE, Lane.BULK), 3.0)),
    Fault("BreakerOpen", "a service is down", _open_breaker),
    Fault("ThrottledTable", "an index is throttled", _every_minute(ours(Metric.WRITES_THROTTLED), 2.0)),
    Fault("LostMessages", "reconcile finds a lost message", _once(ours(Metric.NUDGED, Lane.BULK))),
    Fault("StrayThreads", "a handler outlives its batch", _once(ours(Metric.STRAY_THREADS))),
    Fault("BrokenJobFiles", "a worker cannot load a job file", _once(ours(Metric.BROKEN_JOB_FILES))),
    Fault("NotAccepted", "the redirect cannot submit a click", _once(ours(Metric.NOT_ACCEPTED, Lane.BULK))),
    Fault("NearConcurrencyQuota", "the account uses 90 % of its concurrency", _every_minute(CONCURRENCY, 900.0)),
    Fault("UnheardPages", "a page reaches no subscriber", _unheard),
    Fault("ApiErrors", "the API answers with 5xx", _every_minute(of_api(), 2.0)),
    Fault("ShortenerApiErrors", "the shortener answers with 5xx", _every_minute(of_api("ShortenerApi"), 2.0)),
    Fault("LateStream", "a record blocks the stream", _blocked_stream("Publisher")),
    Fault("IdlePublisher", "the mapping of the publisher is disabled", _publisher_disabled),
    Fault("UnpublishedRecords", "Lambda sets a record aside", _one_message("PublisherFailures")),
    Fault("PassedOverRecords", "owed work fails for five minutes", _once(ours(Metric.PASSED_OVER))),
    Fault("MissedCalls", "a call of tick fails at every try", _one_message("Missed")),
    Fault("StoppedReconcile", "the schedule of reconcile is disabled", _reconcile_off),
    Fault("LateReconcile", "a pass takes too long", _slow_reconcile),
    Fault("DriftedResources", "a mapping differs from the template", _drift),
    *(
        Fault(
            f"FunctionErrors{group}",
            f"{function} crashes each minute",
            _every_minute(of_function("Errors", function), 1.0),
        )
        for group, function in (
            ("workers", worker(Lane.DEFAULT)),
            ("api", "Query"),
            ("publisher", "Publisher"),
            ("scheduled", "Tick"),
        )
    ),
    *(
        Fault(
            f"FunctionThrottles{group}",
            f"{function} is throttled",
            _every_minute(of_function("Throttles", function), 1.0),
        )
        for group, function in (
            ("workers", worker(Lane.DEFAULT)),
            ("api", "Submit"),
            ("publisher", "Publisher"),
            ("scheduled", "Wake"),
        )
    ),
    Fault(
        "ShortenerFunctionErrorsshortener",
        "the redirect crashes each minute",
        _every_minute(of_function("Errors", "ShortenerRedirect"), 1.0),
    ),
    Fault(
        "ShortenerFunctionThrottlesshortener",
        "the redirect is throttled",
        _every_minute(of_function("Throttles", "ShortenerRedirect"), 1.0),
    ),
]
#: The faults of a stage with an archive.
OF_THE_ARCHIVE: Final = [
    Fault("LateArchive", "a record blocks the archive", _blocked_stream("Archiver")),
    Fault("UnarchivedRecords", "Lambda sets an ended job aside", _one_message("ArchiverFailures")),
    Fault(
        "FunctionErrorsarchiver",
        "Archiver crashes each minute",
        _every_minute(of_function("Errors", "Archiver"), 1.0),
    ),
    Fault(
        "FunctionThrottlesarchiver",
        "Archiver is throttled",
        _every_minute(of_function("Throttles", "Archiver"), 1.0),
    ),
]
