"""Writes the log lines and the metrics of outcomes. A log message is a constant; the details are its fields."""

import itertools
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from typing import Final

from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

from tidemill.application.attempt_report import Ending, Report
from tidemill.application.job_types import JobType
from tidemill.application.owed import Taken
from tidemill.application.publish import Published, Step
from tidemill.application.reconcile import Reconciled, RepairAction
from tidemill.application.release import Released
from tidemill.application.submit import Accepted
from tidemill.application.table_pass import PassReport
from tidemill.application.wake import Woken
from tidemill.domain.errors import TidemillError
from tidemill.domain.job import DeadLetter, DeathReason, Job, Reference, reference_of
from tidemill.names import METRIC_NAMESPACE, Env, Lane, Metric
from tidemill.settings import setting
from tidemill.telemetry.job_fields import job_fields, reference_fields
from tidemill.telemetry.withheld_text import WithheldText

_ENDING_METRICS: Final[Mapping[Ending, Metric]] = {
    Ending.SUCCEEDED: Metric.SUCCEEDED,
    Ending.RETRYING: Metric.RETRIED,
    Ending.DEAD: Metric.DEAD,
    Ending.CANCELLED: Metric.CANCELLED,
    Ending.SNOOZED: Metric.SNOOZED,
    Ending.CONTINUED: Metric.CONTINUED,
    Ending.HELD: Metric.HELD,
    Ending.PARKED: Metric.PARKED,
    Ending.RELEASED: Metric.RELEASED,
    Ending.UNAVAILABLE: Metric.UNAVAILABLE,
    Ending.MALFORMED: Metric.DROPPED,
}
_REPAIR_METRICS: Final[Mapping[RepairAction, Metric]] = {
    RepairAction.NUDGED: Metric.NUDGED,
    RepairAction.WOKEN: Metric.WOKEN,
    RepairAction.UNDELIVERABLE: Metric.UNDELIVERABLE,
    RepairAction.ADVANCED: Metric.ADVANCED,
}
#: Deaths that the handler or the caller asked for.
_INTENDED_DEATHS: Final = frozenset({DeathReason.GAVE_UP, DeathReason.DEADLINE})
#: One log line names at most this many unreadable items. They mostly share one cause.
_UNREADABLE_NAMED: Final = 20
#: Endings of attempts whose handler ran.
_ATTEMPTED: Final = frozenset(
    {Ending.SUCCEEDED, Ending.RETRYING, Ending.DEAD, Ending.CANCELLED, Ending.SNOOZED, Ending.CONTINUED}
)


@cache
def logger() -> Logger:
    """The Powertools environment variables set its service name and level."""
    withheld = os.environ.get(Env.WITHHOLD_EXCEPTION_TEXT)
    return Logger(logger_formatter=WithheldText()) if withheld else Logger()


class Telemetry:
    """Logs and counts what one invocation did. Create one for each invocation; it is not thread-safe."""

    def __init__(self, *, stage: str) -> None:
        self._stage = stage
        self._metrics: dict[Lane, EphemeralMetrics] = {}

    @classmethod
    def here(cls) -> "Telemetry":
        """In a function, whose environment names the stage. Make one for each invocation."""
        return cls(stage=setting(Env.STAGE))

    def accepted(self, accepted: Accepted) -> None:
        job = accepted.job
        self._count(job.lane, Metric.REPLAYED if accepted.replayed else Metric.SUBMITTED)
        logger().info("replayed" if accepted.replayed else "accepted", extra=job_fields(job))

    def not_decided(self, number: int) -> None:
        """The response to a batch request has so many submissions with a status of 500 and above."""
        if number:
            self._count(Lane.DEFAULT, Metric.NOT_DECIDED, number)

    def controlled(self, what: str, job: Job) -> None:
        """The owner cancelled or retried the job. A running job is not cancelled yet: its state is still running."""
        logger().info(what, extra=job_fields(job) | {"state": job.state})

    def not_accepted(self, job_type: JobType, error: TidemillError) -> None:
        """The store did not accept a submission, and the caller continues without the job."""
        self._count(job_type.lane, Metric.NOT_ACCEPTED)
        logger().error("not accepted", extra={"job_type": job_type.name, "lane": job_type.lane, "error": str(error)})

    def published(self, published: Published) -> None:
        for sent in published.sent:
            self._count(sent.lane, Metric.DISPATCHED)
            message = "dead-letter message sent" if isinstance(sent.body, DeadLetter) else "dispatched"
            extra = reference_fields(reference_of(sent.body)) | {"delay_seconds": sent.delay_seconds}
            logger().info(message, extra=extra)
        for job in published.advanced:
            self._count(job.lane, Metric.ADVANCED)
            logger().info("group advanced", extra=job_fields(job) | {"group": job.group})
        for step in published.failed_steps:
            name = "group" if step.step is Step.ADVANCE else "job_id"
            extra = {"tenant": step.work.tenant, name: step.work.name, "sequence": step.sequence, "error": step.error}
            logger().error(step.step.value, extra=extra | {"handed_over": step.handed_over})
            if step.handed_over:
                self._count(Lane.DEFAULT, Metric.HANDED_OVER)
        if published.failed:
            logger().error("stream records failed", extra={"sequences": published.failed})

    def taken(self, taken: Taken) -> None:
        """What came of the work that publish handed over."""
        for job in taken.advanced:
            self._count(job.lane, Metric.ADVANCED)
            logger().info("group advanced", extra=job_fields(job) | {"group": job.group})
        for job in taken.resent:
            self._count(job.lane, Metric.RESENT)
            logger().info("dispatched again", extra=job_fields(job))
        for owed in taken.overdue:
            self._count_overdue()
            work = owed.work
            extra = {"kind": work.kind, "tenant": work.tenant, "work": work.name, "since": owed.since.isoformat()}
            logger().error("owed work overdue", extra=extra | {"tries": owed.tries, "error": owed.error})
        if not taken.finished:
            logger().warning("owed work unfinished")

    def attempt_ended(self, lane: Lane, reference: Reference | None, report: Report) -> None:
        """`reference` is None for a malformed message."""
        job = report.job
        if metric := _ENDING_METRICS.get(report.ending):
            self._count(lane, metric)
        if report.ending is Ending.DEAD and report.death not in _INTENDED_DEATHS:
            self._count(lane, Metric.FAILED)
        if report.put_back_until:
            self._count(lane, Metric.PUT_BACK)
        extra = (job_fields(job) if job else reference_fields(reference) if reference else {}) | {
            name: str(value) for name in ("verdict", "error", "put_back_until") if (value := getattr(report, name))
        }
        if job and job.claimed_at and report.ending in _ATTEMPTED:
            extra["attempt_ms"] = round(report.duration_seconds * 1000)
            self._add(lane, Metric.ATTEMPT_DURATION, report.duration_seconds * 1000)
            if job.ready_at:
                extra["start_latency_ms"] = round((job.claimed_at - job.ready_at).total_seconds() * 1000)
                self._add(lane, Metric.START_LATENCY, (job.claimed_at - job.ready_at).total_seconds() * 1000)
        self._level(report)(report.ending.value, extra=extra, exc_info=report.cause)

    def stray_threads(self, lane: Lane, strays: Sequence[Reference]) -> None:
        """Handlers outlived their attempts and their batch, so the process ends now."""
        for stray in strays:
            self._count(lane, Metric.STRAY_THREADS)
            logger().error("stray thread", extra=reference_fields(stray))

    def woken(self, woken: Woken) -> None:
        for lane, number in woken.jobs.items():
            self._count(lane, Metric.WOKEN, number)
        extra = {"jobs": sum(woken.jobs.values()), "finished": woken.finished}
        if woken.ahead is not None:
            extra["ahead_ms"] = round(woken.ahead.total_seconds() * 1000)
        logger().info("woken", extra=extra)
        self._unreadable_items({f"{tenant}#{job_id}": error for tenant, job_id, error in woken.unreadable})

    def released(self, released: Released) -> None:
        """The parked jobs that wake released. Those that workers release are in the line of their run."""
        for lane, number in Counter(job.lane for job in released.jobs).items():
            self._count(lane, Metric.UNPARKED, number)
        if released.jobs or released.left:
            extra = {"jobs": len(released.jobs), "lines_left": released.left}
            (logger().warning if released.left else logger().info)("parked jobs released", extra=extra)
        # A line is named by its limit key, which payloads contain, so the log has only the errors.
        self._unreadable_items({f"line {number}": error for number, error in enumerate(released.failed, 1)})

    def reconciled(self, reconciled: Reconciled) -> None:
        for (action, lane), number in reconciled.actions.items():
            if lane and action in _REPAIR_METRICS:
                self._count(lane, _REPAIR_METRICS[action], number)
        extra: dict[str, object] = {action.value: reconciled.count(action) for action in RepairAction}
        if reconciled.dead_letters:
            extra["dead_letters"] = {lane: asdict(swept) for lane, swept in reconciled.dead_letters.items()}
        if reconciled.progress:
            extra["pass"] = self._passed(reconciled.progress)
        failed = reconciled.count(RepairAction.FAILED)
        (logger().warning if failed else logger().info)("reconciled", extra=extra)
        self._unreadable_items({item.key: item.error for item in reconciled.unreadable})

    def _passed(self, progress: PassReport) -> dict[str, object]:
        """Count the progress of a pass, and return it as fields. The pass belongs to no lane: see `_count_given_up`."""
        table_pass = progress.table_pass
        self._add(Lane.DEFAULT, Metric.RECONCILE_AGE, progress.age.total_seconds() * 1000)
        self._count(Lane.DEFAULT, Metric.RECONCILE_ITEMS, progress.read)
        self._count(Lane.DEFAULT, Metric.RECONCILE_SEGMENTS, progress.done)
        if progress.completed and table_pass.ended_at:
            duration = table_pass.ended_at - table_pass.began_at
            self._add(Lane.DEFAULT, Metric.RECONCILE_DURATION, duration.total_seconds() * 1000)
        return {
            "number": table_pass.number,
            "began_at": table_pass.began_at.isoformat(),
            "open": table_pass.open,
            "busy": progress.busy,
            "segments": f"{progress.done} of {table_pass.segments}",
            "read": progress.read,
            "age_seconds": round(progress.age.total_seconds()),
        }

    def flush(self) -> None:
        """Write the metrics, one embedded-format line per lane. CloudWatch extracts them from the log."""
        for metrics in self._metrics.values():
            # Powertools flushes on its own at 100 values of one metric, so the set may be empty.
            if metrics.metric_set:
                metrics.flush_metrics()

    def _count_overdue(self) -> None:
        """The stream belongs to no lane, but the metric needs one: the alarm watches the default lane."""
        self._count(Lane.DEFAULT, Metric.PASSED_OVER)

    def _level(self, report: Report) -> Callable[..., None]:
        if report.ending in {Ending.DEAD, Ending.MALFORMED}:
            return logger().error
        return logger().warning if report.error else logger().info

    def _unreadable_items(self, errors: Mapping[str, Exception]) -> None:
        if errors:
            # Their lanes are unreadable too, so the default lane counts them.
            self._count(Lane.DEFAULT, Metric.UNREADABLE, len(errors))
            named = {key: str(error) for key, error in itertools.islice(errors.items(), _UNREADABLE_NAMED)}
            logger().error("unreadable items", extra={"number": len(errors), "errors": named})

    def _count(self, lane: Lane, metric: Metric, number: int = 1) -> None:
        self._of(lane).add_metric(metric, MetricUnit.Count, number)

    def _add(self, lane: Lane, metric: Metric, milliseconds: float) -> None:
        self._of(lane).add_metric(metric, MetricUnit.Milliseconds, milliseconds)

    def _of(self, lane: Lane) -> EphemeralMetrics:
        if lane not in self._metrics:
            # An empty service omits that dimension, because the dashboard adds up the values of all functions.
            metrics = EphemeralMetrics(namespace=METRIC_NAMESPACE, service="")
            metrics.add_dimension("stage", self._stage)
            metrics.add_dimension("lane", lane)
            self._metrics[lane] = metrics
        return self._metrics[lane]
