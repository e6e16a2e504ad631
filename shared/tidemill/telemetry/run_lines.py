"""The lines of runs: one when a run is claimed, and one with its metrics when its message has ended.

Each is written when it happens, so a worker that is killed loses at most the line that it is writing.
"""

import json
from collections.abc import Callable, Container
from typing import Final

from msgspec import Struct

from tidemill.application.attempt.attempt_report import Ending, Report
from tidemill.application.attempt.traceback_text import handler_traceback
from tidemill.application.submission.new_jobs import Accepted
from tidemill.domain.attempt.error_groups import decisive
from tidemill.domain.dispatch.job_message import Reference
from tidemill.domain.error_text import class_name
from tidemill.domain.job import Job
from tidemill.domain.limits.adaptive_limit import ConcurrencyChange
from tidemill.domain.waiting.waiting import Line
from tidemill.metrics import Metric
from tidemill.names import OTHER_TYPES, Lane
from tidemill.telemetry.embedded_metrics import embedded
from tidemill.telemetry.job_fields import job_fields, reference_fields
from tidemill.telemetry.outcome_log import Telemetry, logger
from tidemill.telemetry.run_metrics import run_metrics

#: Longest traceback and longest error text in a line, in bytes of JSON. With them, the two lines of a failed attempt
#: stay below 2 KB.
LARGEST_TRACEBACK_BYTES: Final = 650
LARGEST_ERROR_BYTES: Final = 200


class RunLines(Struct, frozen=True, kw_only=True):
    """Observes the runs of one invocation. Threads may share it: each event is one line, written at once."""

    telemetry: Telemetry
    lane: Lane
    request_id: str
    #: The version of the deployed code; empty if unknown.
    version: str = ""
    #: The types that have metrics of their own. None: types have no metrics.
    measured_types: Container[str] | None = None

    def claimed(self, job: Job) -> None:
        logger().info("claimed", extra=self._fields(job))

    def ended(self, reference: Reference | None, report: Report) -> None:
        """`reference` is None for a malformed message."""
        job = report.job
        fields = self._fields(job) if job else reference_fields(reference) if reference else {}
        metrics = embedded(
            run_metrics(report), stage=self.telemetry.stage, lane=self.lane, job_type=self._measured_type(job)
        )
        _level(report)(report.ending.value, extra=fields | _why(report) | metrics)
        self.telemetry.accepted(*(Accepted(job=follow_up, replayed=False) for follow_up in report.follow_ups))

    def lowered(self, job: Job, line: Line, change: ConcurrencyChange) -> None:
        """The decision with its inputs."""
        if (lowered := change.lowered) is None:
            return
        decision = {
            "limit": str(line),
            "why": lowered.why,
            "allowed": lowered.allowed,
            "allowed_before": change.sample.entered.allowed,
            "in_use": change.sample.taken,
            "seconds": change.sample.seconds,
            "falls": lowered.falls,
        }
        metrics = embedded(
            {Metric.CONCURRENCY_LOWERED: 1},
            stage=self.telemetry.stage,
            lane=self.lane,
            job_type=self._measured_type(job),
        )
        logger().warning("concurrency lowered", extra=self._fields(job) | decision | metrics)

    def _fields(self, job: Job) -> dict[str, object]:
        version = {"version": self.version} if self.version else {}
        return job_fields(job) | {"request_id": self.request_id} | version

    def _measured_type(self, job: Job | None) -> str | None:
        if job is None or self.measured_types is None:
            return None
        return job.type if job.type in self.measured_types else OTHER_TYPES


def _why(report: Report) -> dict[str, object]:
    why: dict[str, object] = {
        name: str(value) for name in ("verdict", "put_back_until") if (value := getattr(report, name))
    }
    if report.error:
        why["error"] = _bounded(lambda longest: (report.error or "")[:longest], LARGEST_ERROR_BYTES)
    if cause := report.cause:
        why["exception_name"] = class_name(decisive(cause))
        why["exception"] = _bounded(lambda longest: handler_traceback(cause, longest=longest), LARGEST_TRACEBACK_BYTES)
    return why


def _bounded(text: Callable[[int], str], largest: int) -> str:
    """The text of a largest number of characters, so that it has at most `largest` bytes as JSON."""
    longest = largest
    while len(json.dumps(bounded := text(longest), ensure_ascii=False).encode(errors="backslashreplace")) > largest + 2:
        longest = longest * 3 // 4
    return bounded


def _level(report: Report) -> Callable[..., None]:
    if report.ending in {Ending.DEAD, Ending.MALFORMED}:
        return logger().error
    return logger().warning if report.error else logger().info
