"""A handler that outlives its time harms no other job, and its worker ends its process."""

import json
from typing import Final

from tests.simulation.checks.document_changes import DocumentChangeChecks
from tests.simulation.checks.messages import permits_deletion, reference_in
from tests.simulation.checks.newer_documents import is_newer
from tests.simulation.checks.violation import number_of, require, require_in_task
from tests.simulation.world.faults import Fault
from tests.simulation.world.lambda_environments import FAR_OFF_MS
from tests.simulation.world.sqs_queue import Queue
from tests.simulation.world.task_scheduler import Process
from tests.simulation.world.world import World
from tidemill.domain.errors import JobTimeoutError
from tidemill.sqs.messages import SCHEMA_VERSION

#: A visibility timeout is in whole seconds, by the clock of the worker, and its call takes time.
_LATE_MS: Final = 6_000
_TIMED_OUT: Final = JobTimeoutError.__name__
_CHECK: Final = "no other job suffers from a stray thread"


class StrayThreadChecks:
    """Watches the lanes of one world, and runs at its end."""

    def __init__(self, world: World, documents: DocumentChangeChecks) -> None:
        self._world = world
        self._documents = documents
        for mapping in world.mappings.values():
            mapping.exit_watchers.append(self._exited)

    def _exited(self, queue: Queue, receipts: list[str], process: Process) -> None:
        """Each message that must stay comes back when its job can run, and not after the visibility timeout."""
        world = self._world
        counted = world.faults.counted
        if world.sdk.gave_up[process.name] or counted[Fault.HIDE_FAILED]:
            return
        late_ms = _LATE_MS + (2 * FAR_OFF_MS if counted[Fault.CLOCK_FAR_OFF] else 0)
        for message in (message for message in queue.messages if message.receipt in receipts):
            key, generation = reference_in(message)
            item = world.jobs.items.get((key,))
            if permits_deletion(item, generation, now_ms=world.scheduler.now_ms):
                continue
            if counted[Fault.NEWER_MESSAGE] and json.loads(message.body)["schema"] > SCHEMA_VERSION:
                continue  # it was put back for the newer version, if this process was of the older one
            if is_newer(item or {}):
                continue  # so was the message of a document that only the newer version can read
            latest_ms = max(number_of(item, "due"), world.scheduler.now_ms) + late_ms
            what = f"a message that stays is hidden for {message.visible_ms - world.scheduler.now_ms} ms"
            require_in_task(world.scheduler, message.visible_ms <= latest_ms, _CHECK, what, key)

    def at_end(self) -> None:
        """Raises `Violation`."""
        for run in self._world.runs:
            in_time = run.began_ms <= run.deadline_ms
            require(in_time, "no run begins after its deadline", f"{run.began_ms - run.deadline_ms} ms late", run.key)
            require(not run.found, "no other job suffers from a spoiled process", f"{run.found} in {run.by}", run.key)
        self._no_run_begins_beside_a_stray()
        self._no_run_fails_before_its_deadline()

    def _no_run_begins_beside_a_stray(self) -> None:
        for expired_ms, by, key in self._world.expired_runs:
            own = [run for run in self._world.runs if run.by == by]
            strays = [run for run in own if run.key == key and run.began_ms <= expired_ms]
            ends_ms = max((run.ended_ms or 0 for run in strays), default=0)
            for run in own:
                beside = expired_ms < run.began_ms < ends_ms
                require(not beside, _CHECK, f"it began beside {key} in {by}", run.key)

    def _no_run_fails_before_its_deadline(self) -> None:
        # A run that began after its lease names the owner of the next one.
        runs = {(run.owner, run.by): run for run in self._world.runs}
        for _, by, report in self._world.reports:
            owner = report.job.lease.owner if report.job else None
            if (owner, by) in runs and owner in self._documents.settled and (report.error or "").startswith(_TIMED_OUT):
                settled_ms, key = self._documents.settled[owner]
                early_ms = runs[owner, by].deadline_ms - settled_ms
                require(early_ms <= 0, "no run times out before its deadline", f"{early_ms} ms early", key)
