"""Patches that record in the world what its workers and use cases do and report. They change nothing else."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from tests.simulation.world.faults import Fault
from tests.simulation.world.worked_batch import WorkedBatch
from tidemill.application.dispatch.reactions import PublishStep
from tidemill.telemetry import outcome_log, run_lines
from tidemill.telemetry.handler_output import handler_scope
from tidemill.worker import lane_worker, message_batch, message_run

if TYPE_CHECKING:
    from tests.simulation.world.world import World

#: By beginning of a job's error text, the fault that explains it: the worker has another version.
_OTHER_VERSION_ERRORS: Final = {"UnknownJobTypeError": Fault.UNKNOWN_TYPE, "InvalidPayloadError": Fault.REFUSED_PAYLOAD}


def patches(world: "Callable[[], World]", process: Callable[[], Any]) -> list[tuple[Any, str, Any]]:
    """`world` and `process` return the entered world and the process that runs."""
    watch, telemetry = _Watch(world, process), outcome_log.Telemetry
    return [
        (message_batch, "handler_scope", watch.handler_scope(handler_scope)),
        (run_lines.RunLines, "ended", watch.ended(run_lines.RunLines.ended)),
        (telemetry, "here", watch.made(telemetry.here)),
        (telemetry, "published", watch.published(telemetry.published)),
        (telemetry, "woken", watch.reported(telemetry.woken)),
        (telemetry, "owed_result", watch.reported(telemetry.owed_result)),
        (telemetry, "released", watch.reported(telemetry.released)),
        (telemetry, "reconciled", watch.reconciled(telemetry.reconciled)),
        (telemetry, "rested", watch.rested(telemetry.rested)),
        (lane_worker.Worker, "work", watch.work(lane_worker.Worker.work)),
        (message_run.MessageRun, "expire", watch.expire(message_run.MessageRun.expire)),
        (message_run.MessageRun, "release_slot", watch.release_slot(message_run.MessageRun.release_slot)),
    ]


class _Watch:
    """Each method takes what it watches, and returns what takes its place."""

    def __init__(self, world: "Callable[[], World]", process: Callable[[], Any]) -> None:
        self._world = world
        self._process = process

    def made(self, make: Callable[..., Any]) -> Callable[..., Any]:
        """Show the telemetry of each invocation to those who watch."""

        def watched() -> Any:
            made = make()
            for watch in self._world().telemetry_watchers:
                watch(self._process(), made)
            return made

        return watched

    def handler_scope(self, scope: Callable[..., Any]) -> Callable[..., Any]:
        """Record each run whose handler is called, of the engine's own types as well."""

        def watched(job: Any, *, request_id: str) -> Any:
            self._world().begun.add(job.lease.owner)
            return scope(job, request_id=request_id)

        return watched

    def ended(self, worked: Callable[..., None]) -> Callable[..., None]:
        """Record the report of each message in the world."""

        def watched(lines: run_lines.RunLines, reference: Any, report: Any) -> None:
            world = self._world()
            world.reports.append((world.scheduler.now_ms, self._process().name, report))
            world.reports_by_message.append((reference, report))
            for error, fault in _OTHER_VERSION_ERRORS.items():
                if (report.error or "").startswith(error):
                    world.faults.count(fault)
            worked(lines, reference, report)

        return watched

    def published(self, published: Callable[..., None]) -> Callable[..., None]:
        """Record the steps of publish that failed."""

        def watched(telemetry: outcome_log.Telemetry, came_of_it: Any) -> None:
            world, by = self._world(), self._process().name
            world.use_case_reports.append((world.scheduler.now_ms, by, came_of_it))
            for step in came_of_it.failed_steps:
                if step.step is PublishStep.READ:
                    world.unread_changes.add((step.work.tenant, step.work.name))
                if step.handed_over:
                    world.faults.count(Fault.HANDED_OVER)
                world.log(by, f"*{step.step} ({step.work.name}): {step.error}; handed over: {step.handed_over}")
            published(telemetry, came_of_it)

        return watched

    def expire(self, expire: Callable[..., None]) -> Callable[..., None]:
        """Record when a worker decides that the time of a run is over."""

        def watched(message: message_run.MessageRun) -> None:
            world = self._world()
            if message._attempt:
                reference = message._attempt.reference
                key = f"{reference.tenant}#{reference.job_id}"
                world.expired_runs.append((world.scheduler.now_ms, self._process().name, key))
            expire(message)

        return watched

    def rested(self, reported: Callable[..., None]) -> Callable[..., None]:
        """Record the end of the rest of a worker."""

        def watched(telemetry: outcome_log.Telemetry, *given: Any, **named: Any) -> None:
            self._world().rests.append((self._world().scheduler.now_ms, self._process().name))
            reported(telemetry, *given, **named)

        return watched

    def work(self, work: Callable[..., Any]) -> Callable[..., Any]:
        """Record each batch that was answered."""

        def watched(worker: lane_worker.Worker, event: Any, invocation: Any) -> Any:
            world, by = self._world(), self._process().name
            began_ms = world.scheduler.now_ms
            answer = work(worker, event, invocation)
            now_ms = world.scheduler.now_ms
            ends_ms = now_ms + invocation.get_remaining_time_in_millis()
            world.batches.append(
                WorkedBatch(lane=worker.settings.lane, by=by, began_ms=began_ms, ended_ms=now_ms, ends_ms=ends_ms)
            )
            return answer

        return watched

    def release_slot(self, release_slot: Callable[..., None]) -> Callable[..., None]:
        """Record when a worker begins to release the slot of a stray, just before it ends its process."""

        def watched(message: message_run.MessageRun) -> None:
            self._world().slots_released[self._process().name] = self._world().scheduler.now_ms
            release_slot(message)

        return watched

    def reported(self, reported: Callable[..., None]) -> Callable[..., None]:
        """Record the report of a step of wake, or of owed work."""

        def watched(telemetry: outcome_log.Telemetry, came_of_it: Any) -> None:
            world = self._world()
            world.use_case_reports.append((world.scheduler.now_ms, self._process().name, came_of_it))
            reported(telemetry, came_of_it)

        return watched

    def reconciled(self, reconciled: Callable[..., None]) -> Callable[..., None]:
        """Record the items that reconcile reports as unreadable."""

        def watched(telemetry: outcome_log.Telemetry, came_of_it: Any) -> None:
            world = self._world()
            world.use_case_reports.append((world.scheduler.now_ms, self._process().name, came_of_it))
            world.unreadable.update({item.key: world.scheduler.now_ms for item in came_of_it.unreadable})
            reconciled(telemetry, came_of_it)

        return watched


__all__ = ["patches"]
