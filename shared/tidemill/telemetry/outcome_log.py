"""The one place that turns what happened into a log line and its metrics."""

import itertools
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import cache
from typing import Final

from aws_lambda_powertools import Logger
from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

from tidemill.application.attempt_report import Ending, Report
from tidemill.application.job_types import JobType
from tidemill.application.publish import Published
from tidemill.application.reconcile import Act, Reconciled
from tidemill.application.submit import Accepted
from tidemill.application.wake import Woken
from tidemill.domain.errors import TidemillError
from tidemill.domain.job import DeadLetter, Job, Reference, reference_of
from tidemill.names import METRIC_NAMESPACE, Env, Lane, Metric
from tidemill.settings import setting

_ENDING_METRICS: Final[Mapping[Ending, Metric]] = {
    Ending.SUCCEEDED: Metric.SUCCEEDED,
    Ending.RETRYING: Metric.RETRIED,
    Ending.DEAD: Metric.DEAD,
    Ending.CANCELLED: Metric.CANCELLED,
    Ending.SNOOZED: Metric.SNOOZED,
    Ending.CONTINUED: Metric.CONTINUED,
    Ending.HELD: Metric.HELD,
    Ending.RELEASED: Metric.RELEASED,
    Ending.UNAVAILABLE: Metric.UNAVAILABLE,
    Ending.MALFORMED: Metric.DROPPED,
}
_ACT_METRICS: Final[Mapping[Act, Metric]] = {
    Act.NUDGED: Metric.NUDGED,
    Act.WOKEN: Metric.WOKEN,
    Act.UNDELIVERABLE: Metric.UNDELIVERABLE,
    Act.ADVANCED: Metric.ADVANCED,
}
#: Of the documents that nobody can read, so many are named. They are all of one kind, mostly.
_UNREADABLE_NAMED: Final = 20
#: Endings after which a handler has run.
_ATTEMPTED: Final = frozenset(
    {Ending.SUCCEEDED, Ending.RETRYING, Ending.DEAD, Ending.CANCELLED, Ending.SNOOZED, Ending.CONTINUED}
)


@cache
def logger() -> Logger:
    """Its service name and level come from the Powertools variables."""
    return Logger()


class Telemetry:
    """Says what happened in one invocation. Made for each, and not shared by threads."""

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
        logger().info("replayed" if accepted.replayed else "accepted", extra=_fields(job))

    def controlled(self, what: str, job: Job) -> None:
        """The owner had the job cancelled, which a running one is yet to be, or retried."""
        logger().info(what, extra=_fields(job) | {"state": job.state})

    def not_accepted(self, job_type: JobType, error: TidemillError) -> None:
        """A submission that the store did not take, and whose caller went on without it."""
        self._count(job_type.lane, Metric.NOT_ACCEPTED)
        logger().error("not accepted", extra={"job_type": job_type.name, "lane": job_type.lane, "error": str(error)})

    def published(self, published: Published) -> None:
        for sent in published.sent:
            self._count(sent.lane, Metric.DISPATCHED)
            what = "letter sent" if isinstance(sent.body, DeadLetter) else "dispatched"
            logger().info(
                what, extra=_reference_fields(reference_of(sent.body)) | {"delay_seconds": sent.delay_seconds}
            )
        for job in published.advanced:
            self._count(job.lane, Metric.ADVANCED)
            logger().info("its turn in its group", extra=_fields(job) | {"group": job.group})
        for trouble in published.troubles:
            what = "its group did not go on; in the end that is for reconcile" if trouble.job.group else "not tidied up"
            logger().error(what, extra=_fields(trouble.job) | {"group": trouble.job.group}, exc_info=trouble.error)
            if trouble.given_up:
                self._pass_over()
        if published.failed:
            logger().error("not dispatched; the stream will bring them again", extra={"sequences": published.failed})

    def passed_over(self, sequence: str, error: TidemillError) -> None:
        """A record of the stream that nobody could read in time, and that holds up no others any more."""
        self._pass_over()
        extra = {"sequence": sequence, "error": str(error)}
        logger().error("gave up a stream record; reconcile looks after its job", extra=extra)

    def unreadable(self, sequence: str, error: TidemillError) -> None:
        """A record of the stream that this code cannot read."""
        logger().error("unreadable stream record", extra={"sequence": sequence, "error": str(error)})

    def worked(self, lane: Lane, reference: Reference | None, report: Report) -> None:
        """`reference` is None for a message that is not one of ours."""
        job = report.job
        if metric := _ENDING_METRICS.get(report.ending):
            self._count(lane, metric)
        if report.put_back_until:
            self._count(lane, Metric.PUT_BACK)
        extra = (_fields(job) if job else _reference_fields(reference) if reference else {}) | {
            name: str(value) for name in ("verdict", "error", "put_back_until") if (value := getattr(report, name))
        }
        if job and job.claimed_at and report.ending in _ATTEMPTED:
            extra["attempt_ms"] = round(report.duration_seconds * 1000)
            self._add(lane, Metric.ATTEMPT_DURATION, report.duration_seconds * 1000)
            if job.ready_at:
                extra["start_latency_ms"] = round((job.claimed_at - job.ready_at).total_seconds() * 1000)
                self._add(lane, Metric.START_LATENCY, (job.claimed_at - job.ready_at).total_seconds() * 1000)
        self._level(report)(report.ending.value, extra=extra, exc_info=report.cause)

    def woken(self, woken: Woken) -> None:
        for lane, number in woken.jobs.items():
            self._count(lane, Metric.WOKEN, number)
        extra = {"jobs": sum(woken.jobs.values()), "finished": woken.finished}
        if woken.ahead is not None:
            extra["ahead_ms"] = round(woken.ahead.total_seconds() * 1000)
        logger().info("woken", extra=extra)
        self._unreadable({f"{tenant}#{job_id}": error for tenant, job_id, error in woken.unreadable})

    def reconciled(self, reconciled: Reconciled) -> None:
        for (act, lane), number in reconciled.acts.items():
            if lane and act in _ACT_METRICS:
                self._count(lane, _ACT_METRICS[act], number)
        extra = {act.value: reconciled.count(act) for act in Act}
        dead_letters = {lane: asdict(swept) for lane, swept in reconciled.dead_letters.items()}
        left = reconciled.count(Act.FAILED) + reconciled.count(Act.UNFINISHED)
        (logger().warning if left else logger().info)("reconciled", extra=extra | {"dead_letters": dead_letters})
        self._unreadable({item.key: item.error for item in reconciled.unreadable})

    def flush(self) -> None:
        """Write the metrics as one embedded-format line a lane; CloudWatch takes them from the log."""
        for metrics in self._metrics.values():
            # At a hundred values of one metric Powertools writes of its own accord, and there may be none left.
            if metrics.metric_set:
                metrics.flush_metrics()

    def _pass_over(self) -> None:
        """The stream is of no lane, and this alarm of none."""
        self._count(Lane.DEFAULT, Metric.PASSED_OVER)

    def _level(self, report: Report) -> Callable[..., None]:
        if report.ending in {Ending.DEAD, Ending.MALFORMED}:
            return logger().error
        return logger().warning if report.error else logger().info

    def _unreadable(self, errors: Mapping[str, TidemillError]) -> None:
        if errors:
            # Nor can their lanes be read.
            self._count(Lane.DEFAULT, Metric.UNREADABLE, len(errors))
            named = {key: str(error) for key, error in itertools.islice(errors.items(), _UNREADABLE_NAMED)}
            logger().error("unreadable items", extra={"number": len(errors), "errors": named})

    def _count(self, lane: Lane, metric: Metric, number: int = 1) -> None:
        self._of(lane).add_metric(metric, MetricUnit.Count, number)

    def _add(self, lane: Lane, metric: Metric, milliseconds: float) -> None:
        self._of(lane).add_metric(metric, MetricUnit.Milliseconds, milliseconds)

    def _of(self, lane: Lane) -> EphemeralMetrics:
        if lane not in self._metrics:
            # An empty service keeps its dimension out: the dashboard adds up over functions.
            metrics = EphemeralMetrics(namespace=METRIC_NAMESPACE, service="")
            metrics.add_dimension("stage", self._stage)
            metrics.add_dimension("lane", lane)
            self._metrics[lane] = metrics
        return self._metrics[lane]


def _fields(job: Job) -> dict[str, object]:
    return {
        "tenant": job.tenant,
        "job_id": job.id,
        "job_type": job.type,
        "lane": job.lane,
        "generation": job.generation,
        "attempt": job.attempt,
        "trace": job.trace,
    }


def _reference_fields(reference: Reference) -> dict[str, object]:
    return {
        "tenant": reference.tenant,
        "job_id": reference.job_id,
        "generation": reference.generation,
        "trace": reference.trace,
    }
