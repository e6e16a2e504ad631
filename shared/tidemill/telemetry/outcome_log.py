"""Writes the log lines and the metrics of outcomes. A log message is a constant; the details are its fields."""

import itertools
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import asdict

from tidemill.application.job_types import JobType
from tidemill.application.submission.new_jobs import Accepted
from tidemill.domain.admission.governor import Governed
from tidemill.domain.breakers.breaker import Breaker
from tidemill.domain.dispatch.dispatch import Dispatch
from tidemill.domain.dispatch.job_message import DeadLetter, Reference, reference_of
from tidemill.domain.error_text import error_text
from tidemill.domain.errors import JobFileError
from tidemill.domain.job import Job
from tidemill.domain.operations.repair_actions import RepairAction
from tidemill.domain.waiting.pauses import Pause
from tidemill.metrics import Metric
from tidemill.names import CANARY_TYPE, Env, Lane
from tidemill.settings import setting
from tidemill.telemetry.embedded_metrics import Values, embedded
from tidemill.telemetry.engine_log import EngineLog
from tidemill.telemetry.job_fields import job_fields, reference_fields
from tidemill.telemetry.line_format import LineFormat
from tidemill.telemetry.line_output import LineOutput
from tidemill.telemetry.line_sample import in_sample, sample_rate

if TYPE_CHECKING:
    # A function writes the outcomes of its own use case alone, so it needs the others not even at its start.
    from tidemill.application.dispatch.owed import OwedResult
    from tidemill.application.dispatch.publish import Published
    from tidemill.application.operations.reconcile import Reconciled
    from tidemill.application.passes.table_pass import PassReport
    from tidemill.application.waiting.release import Released
    from tidemill.application.waiting.wake import Woken

_REPAIR_METRICS: Final[Mapping[RepairAction, Metric]] = {
    RepairAction.NUDGED: Metric.NUDGED,
    RepairAction.WOKEN: Metric.WOKEN,
    RepairAction.UNDELIVERABLE: Metric.UNDELIVERABLE,
    RepairAction.ADVANCED: Metric.ADVANCED,
}
#: One log line names at most this many unreadable items. They mostly share one cause.
_UNREADABLE_NAMED: Final = 20


@cache
def logger() -> EngineLog:
    return new_logger()


def record_not_published(source: str, record: str, error: Exception) -> None:
    """It comes again, or ends in the dead-letter queue of its source."""
    details = {"source": source, "record": record, "error": error_text(error)}
    logger().error("record of a source not published", extra=details)


def configuration_not_read(error: Exception) -> None:
    """The last known values hold."""
    logger().warning("runtime configuration not read", extra={"error": error_text(error)})


def grouped_commit_failed(error: str) -> None:
    """Each job is claimed or settled by a call of its own."""
    logger().warning("grouped commit failed", extra={"error": error})


def joint_insert_failed(error: str) -> None:
    """Each job of the batch is inserted by a call of its own."""
    logger().warning("joint insert failed", extra={"error": error})


def strain_changed(before: Governed, after: Governed) -> None:
    """One line for each change of the level by the governor, with the starts that led to it."""
    extra = {
        "strain_before": before.level,
        "strain": after.level,
        "late": before.starts.late,
        "starts": before.starts.total,
        "window_from": before.window_from.isoformat(),
    }
    (logger().warning if after.level > before.level else logger().info)("strain changed", extra=extra)


def first_message_not_sent(error: str) -> None:
    """The stream brings the job to its lane."""
    logger().warning("first message not sent", extra={"error": error})


def breaker_moved(before: Breaker, after: Breaker) -> None:
    """One line for each transition, with the figures that led to it."""
    extra = {
        "breaker": after.name,
        "before": before.state,
        "state": after.state,
        "failures": before.failures,
        "calls": before.calls,
        "probes": after.probes,
        "reopened": after.reopened,
        "error_class": after.last_error,
        "probe": after.probe[1] if after.probe else None,
        "probe_at": after.probe_at.isoformat(),
    }
    changed = before.closed != after.closed
    metrics = {Metric.BREAKER_OPENED: 1} if before.closed and not after.closed else {}
    line = logger().warning if changed else logger().info
    line("breaker moved", extra=extra | embedded(metrics, stage=setting(Env.STAGE), lane=Lane.DEFAULT))


def submission_refused(message: str, metric: Metric, inputs: Mapping[str, object], *, item: str) -> None:
    """One line for each submission that a decision refuses. `item` is its place in a batch, empty outside of one."""
    extra = {**inputs, "item": item} if item else dict(inputs)
    logger().warning(message, extra=extra | embedded({metric: 1}, stage=setting(Env.STAGE), lane=Lane.DEFAULT))


def submission_deferred(job: Job) -> None:
    """Strain makes the new job begin later."""
    extra = {"job_id": job.id, "job_type": job.type, "run_at": job.run_at and job.run_at.isoformat()}
    metrics = embedded({Metric.SUBMISSIONS_DEFERRED: 1}, stage=setting(Env.STAGE), lane=Lane.DEFAULT)
    logger().info("submission deferred", extra=extra | metrics)


def job_files_broken(faults: Sequence[JobFileError]) -> None:
    """One line for each, when an execution environment starts. It has metrics, since no other line may follow."""
    for fault in faults:
        metrics = embedded({Metric.BROKEN_JOB_FILES: 1}, stage=setting(Env.STAGE), lane=Lane.DEFAULT)
        logger().error("broken job file", extra={"error": str(fault)} | metrics)


def new_logger() -> EngineLog:
    """For the standard output of the present."""
    withhold = bool(os.environ.get(Env.WITHHOLD_EXCEPTION_TEXT))
    return EngineLog(LineFormat(withhold=withhold), LineOutput(sys.stdout, sys.stderr))


class _Line(Struct, frozen=True, kw_only=True):
    lane: Lane
    message: str
    fields: Mapping[str, object]
    #: A stage may write it for a part of its jobs only.
    sampled: bool = False


class Telemetry:
    """Logs and counts what one invocation did. Create one for each invocation.

    Threads may share `accepted`, which writes its metrics at once, and nothing else.
    """

    def __init__(self, *, stage: str, sample_rate: float = 1.0) -> None:
        """`sample_rate` is the part of all jobs whose lines `accepted` and `dispatched` are written."""
        self.stage = stage
        self._sample_rate = sample_rate
        self._metrics: defaultdict[Lane, Counter[Metric]] = defaultdict(Counter)

    @classmethod
    def here(cls) -> "Telemetry":
        """In a function, whose environment names the stage. Make one for each invocation."""
        return cls(stage=setting(Env.STAGE), sample_rate=sample_rate())

    def accepted(self, *accepted: Accepted, over_http: bool = False) -> None:
        """The jobs of one or more submissions, or follow-up jobs."""
        new = Metric.SUBMITTED if over_http else Metric.ADDED
        lines, counts = list[_Line](), defaultdict[Lane, Counter[Metric]](Counter)
        for each in accepted:
            job = each.job
            if job.type != CANARY_TYPE:
                counts[job.lane][Metric.REPLAYED if each.replayed else new] += 1
            fields = {"job_id": job.id, "generation": job.generation, "trace": job.trace}
            message = "replayed" if each.replayed else "accepted"
            lines.append(_Line(lane=job.lane, message=message, fields=fields, sampled=not each.replayed))
        self._write(lines, counts)

    def record_changed(self, source: str, record: str, error: Exception) -> None:
        """The record was published before with other data, and makes no second event. The source has no lane."""
        self._count(Lane.DEFAULT, Metric.RECORDS_CHANGED)
        details = {"source": source, "record": record, "error": error_text(error)}
        logger().warning("record of a source was published with other data", extra=details)

    def items_refused(self, number: int) -> None:
        """Submissions of a batch request. The lane of a refused one may be unknown."""
        if number:
            self._count(Lane.DEFAULT, Metric.ITEMS_REFUSED, number)

    def submissions_failed(self, number: int) -> None:
        """Count the failed submissions of a single or a batch request."""
        if number:
            self._count(Lane.DEFAULT, Metric.SUBMISSIONS_FAILED, number)

    def controlled(self, what: str, job: Job) -> None:
        """The owner cancelled or retried the job. A running job is not cancelled yet: its state is still running."""
        logger().info(what, extra=job_fields(job) | {"state": job.state})

    def not_accepted(self, job_type: JobType, error: Exception) -> None:
        """The store did not accept a submission, and the caller continues without the job."""
        self._count(job_type.lane, Metric.NOT_ACCEPTED)
        logger().error("not accepted", extra={"job_type": job_type.name, "lane": job_type.lane, "error": str(error)})

    def time_skipped(self, job_type: JobType, scheduled_at: str, pause: Pause) -> None:
        """A time of the schedule fell into a pause, and the type does not make up for it."""
        extra = {"job_type": job_type.name, "scheduled_at": scheduled_at, "pause": str(pause.target), "by": pause.by}
        logger().info("scheduled time skipped", extra=extra)

    def published(self, published: "Published") -> None:
        # They carry no metric: SQS counts the messages of a lane.
        self._write([_dispatched(sent) for sent in published.sent], {})
        for job in published.parked:
            self._count(job.lane, Metric.PARKED)
            logger().info("paused", extra=job_fields(job))
        for job in published.advanced:
            self._count(job.lane, Metric.ADVANCED)
            logger().info("group advanced", extra=job_fields(job) | {"group": job.group.key})
        for step in published.failed_steps:
            extra = {
                "tenant": step.work.tenant,
                step.named: step.work.name,
                "sequence": step.sequence,
                "error": step.error,
            }
            logger().error(step.step.value, extra=extra | {"handed_over": step.handed_over})
            if step.handed_over:
                self._count(Lane.DEFAULT, Metric.HANDED_OVER)
        if published.failed:
            logger().error("stream records failed", extra={"sequences": published.failed})

    def owed_result(self, result: "OwedResult") -> None:
        """What came of the work that publish handed over."""
        for job in result.advanced:
            self._count(job.lane, Metric.ADVANCED)
            logger().info("group advanced", extra=job_fields(job) | {"group": job.group.key})
        for job in result.resent:
            self._count(job.lane, Metric.RESENT)
            logger().info("dispatched again", extra=job_fields(job))
        for owed in result.overdue:
            self._count_overdue()
            work = owed.work
            extra = {"kind": work.kind, "tenant": work.tenant, "work": work.name, "since": owed.since.isoformat()}
            logger().error("owed work overdue", extra=extra | {"tries": owed.tries, "error": owed.error})
        if not result.finished:
            logger().warning("owed work unfinished")

    def stray_threads(self, lane: Lane, strays: Sequence[Reference]) -> None:
        """Handlers outlived their attempts and their batch, so the process ends now."""
        for stray in strays:
            self._count(lane, Metric.STRAY_THREADS)
            logger().error("stray thread", extra=reference_fields(stray))

    def process_changed(self, restored: Sequence[str], lost: Sequence[str], job_types: Sequence[str]) -> None:
        """Handlers of these types changed their process for all later handlers. With `lost`, the process ends now."""
        extra = {"job_types": job_types, "restored": restored, "lines_dropped": logger().output.dropped}
        if lost:
            logger().error("process spoiled", extra=extra | {"lost": lost})
        elif restored:
            logger().warning("process restored", extra=extra)

    def rested(self, lane: Lane, *, strain: int, worked: timedelta, rested: timedelta) -> None:
        """Written at once: the invocation ends. `strain` is the level when the rest began."""
        seconds = round(rested.total_seconds(), 3)
        extra = {"strain": strain, "worked_seconds": round(worked.total_seconds(), 3)}
        logger().info("worker rested", extra=extra | embedded({Metric.RESTED: seconds}, stage=self.stage, lane=lane))

    def broken_job_files(self, lane: Lane, number: int) -> None:
        """Those that this worker lacks. The lines of its start name them."""
        if number:
            self._count(lane, Metric.BROKEN_JOB_FILES, number)

    def governed(self, level: int) -> None:
        """The present level that the governor has set."""
        self._count(Lane.DEFAULT, Metric.STRAIN_LEVEL, level)

    def woken(self, woken: "Woken") -> None:
        for lane, number in woken.jobs.items():
            self._count(lane, Metric.WOKEN, number)
        extra = {"jobs": sum(woken.jobs.values()), "finished": woken.finished}
        if woken.ahead is not None:
            extra["ahead_ms"] = _milliseconds(woken.ahead)
        logger().info("woken", extra=extra)
        self._unreadable_items({f"{tenant}#{job_id}": error for tenant, job_id, error in woken.unreadable})

    def released(self, released: "Released") -> None:
        """The parked jobs that wake released. Those that workers release are in the line of their run."""
        for lane, number in Counter(job.lane for job in released.jobs).items():
            self._count(lane, Metric.UNPARKED, number)
        if released.breaker_open:
            self._measure(Metric.BREAKER_OPEN, round(released.breaker_open.total_seconds()))
        if released.jobs or released.left:
            extra = {"jobs": len(released.jobs), "lines_left": released.left}
            (logger().warning if released.left else logger().info)("parked jobs released", extra=extra)
        # A line is named by its limit key, which payloads contain, so the log has only the errors.
        self._unreadable_items({f"line {number}": error for number, error in enumerate(released.failed, 1)})

    def reconciled(self, reconciled: "Reconciled") -> None:
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

    def compared(self, drifted: Mapping[str, str]) -> None:
        """How each mapping and schedule differs that differs from the template, or why it could not be compared."""
        if drifted:
            logger().error("resources drifted", extra={"resources": dict(drifted)})
        self._measure(Metric.DRIFTED, len(drifted))

    def _passed(self, progress: "PassReport") -> dict[str, object]:
        """Count the progress of a pass, and return it as fields."""
        table_pass = progress.table_pass
        self._measure(Metric.RECONCILE_AGE, _milliseconds(progress.age))
        self._count(Lane.DEFAULT, Metric.RECONCILE_ITEMS, progress.read)
        self._measure(Metric.RECONCILE_SEGMENTS, progress.done)
        if progress.completed and table_pass.ended_at:
            duration = table_pass.ended_at - table_pass.began_at
            self._measure(Metric.RECONCILE_DURATION, _milliseconds(duration))
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
        """Write the metrics that no other line has carried, one line per lane."""
        metrics, self._metrics = self._metrics, defaultdict(Counter)
        self._write([], metrics)

    def _write(self, lines: Sequence[_Line], metrics: Mapping[Lane, Values]) -> None:
        """Write those lines that belong to the sample. The last one of each lane carries its metrics."""
        kept = [line for line in lines if not line.sampled or in_sample(str(line.fields["job_id"]), self._sample_rate)]
        carriers = {line.lane: line for line in kept}
        for line in kept:
            carried = metrics.get(line.lane, {}) if carriers[line.lane] is line else {}
            logger().info(line.message, extra={**line.fields, **embedded(carried, stage=self.stage, lane=line.lane)})
        for lane, values in metrics.items():
            if values and lane not in carriers:
                logger().info("metrics", extra=embedded(values, stage=self.stage, lane=lane))

    def _count_overdue(self) -> None:
        """The stream belongs to no lane, but the metric needs one: the alarm watches the default lane."""
        self._count(Lane.DEFAULT, Metric.PASSED_OVER)

    def _unreadable_items(self, errors: Mapping[str, Exception]) -> None:
        if errors:
            # Their lanes are unreadable too, so the default lane counts them.
            self._count(Lane.DEFAULT, Metric.UNREADABLE, len(errors))
            named = {key: str(error) for key, error in itertools.islice(errors.items(), _UNREADABLE_NAMED)}
            logger().error("unreadable items", extra={"number": len(errors), "errors": named})

    def _count(self, lane: Lane, metric: Metric, number: int = 1) -> None:
        self._metrics[lane][metric] += number

    def _measure(self, metric: Metric, value: int) -> None:
        """The present value of a metric of reconcile, whose work belongs to no lane: see `_count_overdue`."""
        self._metrics[Lane.DEFAULT][metric] = value


def _dispatched(sent: Dispatch) -> _Line:
    """With few fields: the lines `claimed` and `succeeded` of the same job have the others."""
    reference, dead = reference_of(sent.body), isinstance(sent.body, DeadLetter)
    fields = {"job_id": reference.job_id, "generation": reference.generation, "trace": reference.trace}
    fields |= {"delay_seconds": sent.delay_seconds} if sent.delay_seconds else {}
    message = "dead-letter message sent" if dead else "dispatched"
    return _Line(lane=sent.lane, message=message, fields=fields, sampled=not dead)


def _milliseconds(time: timedelta) -> int:
    return round(time.total_seconds() * 1000)
