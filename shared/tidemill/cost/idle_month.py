"""What a stage costs in a month without any job of a user: alarms, schedules, canaries, polling.

`tests/integration/test_cost_model.py` compares the figures of one call with those of the functions.
"""

from collections.abc import Sequence
from typing import Final

from tidemill.cost import durations, measured
from tidemill.cost import list_prices as prices
from tidemill.cost.bill import Line, Usage, lines
from tidemill.cost.job_usage import DAY_SECONDS, DAYS_PER_MONTH, of_one_job, with_log_storage
from tidemill.cost.profile import Profile
from tidemill.cost.stage_parts import StageParts
from tidemill.metrics import Metric
from tidemill.names import Lane

#: Read units of one wake of all parts, one query of each shard of each kind, and of one continued call of reconcile.
WAKE_READ_UNITS: Final = 12
RECONCILE_READ_UNITS: Final = 4
#: A pass over a table without jobs, each day.
PASS_READ_UNITS: Final = 100
PASS_WRITE_UNITS: Final = 67
#: Calls of AWS, one after another, in a part of wake and in a continued call of reconcile.
WAKE_CALLS: Final = 4
RECONCILE_CALLS: Final = 10
WAKE_MB: Final = 1769
#: Bytes of our lines.
WAKE_LOG_BYTES: Final = 99
RECONCILE_LOG_BYTES: Final = 1133
#: The metrics that an idle stage writes. `JobsSubmitted` and the metrics of runs leave canaries out.
RECONCILE_METRICS: Final = frozenset(
    {Metric.RECONCILE_AGE, Metric.RECONCILE_ITEMS, Metric.RECONCILE_SEGMENTS, Metric.DRIFTED}
)
CANARY_METRICS: Final = frozenset({Metric.CANARY_LATENCY})
#: Lambda reads an idle queue with five long polls at a time. With a maximum concurrency, as each lane has, it never
#: uses fewer. A long poll waits 20 seconds at most.
#: https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-scaling.html
#: https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/quotas-queues.html
POLLERS: Final = 5
LONG_POLL_SECONDS: Final = 20
#: A canary is a job that travels alone, is kept for an hour, and whose effect is a second item of its settle.
CANARY: Final = Profile(batch=1, result_bytes=0, retention_days=1 / 24)
CANARY_EFFECT_WRITE_UNITS: Final = 3
_SECONDS_PER_MONTH: Final = DAYS_PER_MONTH * DAY_SECONDS


def bill(parts: StageParts, *, log_retention_days: float = 30) -> Sequence[Line]:
    """An estimate, without free tier. A metric that is written in an hour is charged for that hour."""
    metrics = len(RECONCILE_METRICS) * bool(parts.reconcile_calls)
    metrics += len(CANARY_METRICS) * len(Lane) * bool(parts.canary_calls)
    by_month = (
        ("alarms", parts.alarm_metrics, prices.ALARM_METRICS),
        ("composite alarms", parts.composite_alarms, prices.COMPOSITE_ALARMS),
        ("dashboards", parts.dashboards, prices.DASHBOARDS),
        ("custom metrics", metrics, prices.METRICS),
        ("secrets", parts.secrets, prices.SECRETS),
        ("snapshots", parts.snapshot_gigabytes * _SECONDS_PER_MONTH, prices.LAMBDA_SNAPSHOTS),
    )
    standing = [Line(name=name, units=units, price=price) for name, units, price in by_month if units]
    return [*standing, *lines(with_log_storage(_usage(parts), log_retention_days))]


def polls(parts: StageParts) -> float:
    """Requests by which Lambda reads the idle queues in a month."""
    return parts.polled_queues * POLLERS * _SECONDS_PER_MONTH / LONG_POLL_SECONDS


def _usage(parts: StageParts) -> Usage:
    canaries = parts.canary_calls * len(Lane)
    return (
        of_one_job(CANARY).times(canaries)
        + Usage(write_units=CANARY_EFFECT_WRITE_UNITS).times(canaries)
        + _call(measured.FUNCTION_MB, calls=1).times(parts.canary_calls + parts.other_calls)
        + _call(WAKE_MB, calls=WAKE_CALLS, log_bytes=WAKE_LOG_BYTES).times(parts.wake_calls)
        + Usage(read_units=WAKE_READ_UNITS).times(parts.wakes)
        + _call(measured.FUNCTION_MB, calls=RECONCILE_CALLS, log_bytes=RECONCILE_LOG_BYTES).times(parts.reconcile_calls)
        + Usage(read_units=RECONCILE_READ_UNITS).times(parts.reconcile_calls)
        + Usage(read_units=PASS_READ_UNITS, write_units=PASS_WRITE_UNITS).times(DAYS_PER_MONTH)
        + Usage(fair_requests=polls(parts), scheduled_calls=parts.calls)
    )


def _call(memory_mb: int, *, calls: int, log_bytes: int = 0) -> Usage:
    """One invocation by a schedule, whose CPU time is about that of a submission."""
    seconds = durations.invocation_seconds(measured.SUBMIT_CPU_MS, calls * measured.CALL_MS, memory_mb)
    return Usage(
        invocations=1,
        gigabyte_seconds=seconds * memory_mb / 1024,
        log_bytes=measured.PLATFORM_LINES_BYTES + log_bytes,
    )
