"""Records of each run for the checks: its effect in a table of its own, its beginning and end in the world."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from tests.simulation.world.faults import Fault
from tests.simulation.world.installed_patches import world
from tests.simulation.world.lambda_environments import LARGEST_SKEW_MS
from tests.simulation.world.task_scheduler import Killed, Process
from tidemill import Run

#: A variable of the environment that a handler sets, and its successors must not find.
_LEFT: Final = "LEFT_BY_A_HANDLER"


class BrokenError(Exception):
    """An attempt that fails as its plan says, or since a handler cannot do what it needs."""


@dataclass(slots=True)
class HandlerRun:
    """One run of a handler."""

    job_id: str
    tenant: str
    #: The job type.
    kind: str
    lane: str
    attempt: int
    max_attempts: int
    group: str | None
    limit_key: str | None
    by: str
    #: The token in the document at the beginning: its own, unless another worker had taken the job over.
    owner: str
    #: By the clock of the worker.
    claimed_ms: int
    began_ms: int
    #: From then on the run counts as failed.
    deadline_ms: float
    #: The lease that the document had at the beginning.
    lease_ends_ms: int
    asked_to_end: bool
    #: The trace context that the handler was given, and the trace in the document.
    traceparent: str | None
    trace: str
    #: When the job was accepted. It distinguishes two jobs of one key.
    submitted_ms: int
    resumed_from: int
    #: What `Run` says about signals.
    signals: dict[str, Any]
    waited_for: str | None
    timed_out: bool
    #: Last checkpoint that earlier runs saved, and the last of this run.
    saved_before: int
    saved: int = 0
    #: The names and keys of the steps whose functions it has called, and what each step has returned, in order.
    called: list[tuple[str, str]] = field(default_factory=list)
    returned: list[tuple[str, Any]] = field(default_factory=list)
    #: The number of the submission whose payload it has, of a debounced job.
    submission: int | None = None
    #: How many jobs the handler has at a time.
    jobs_of_call: int = 1
    #: Whether it ends without an outcome for any of them.
    call_failed: bool = False
    #: What an earlier handler did to its process. Empty: nothing.
    found: str = ""
    ended_ms: int | None = None

    @property
    def key(self) -> str:
        return f"{self.tenant}#{self.job_id}"


def effect(run: Run, *, refused: bool = False) -> dict[str, Any]:
    """A write that increments a counter, so that a second commit shows. `refused` adds a condition that never holds."""
    return {
        "Update": {
            "TableName": "effects",
            "Key": {"pk": {"S": f"{run.tenant}#{run.job_id}"}},
            "UpdateExpression": "ADD #count :one",
            **({"ConditionExpression": "#count < :one AND #count > :one"} if refused else {}),
            "ExpressionAttributeNames": {"#count": "count"},
            "ExpressionAttributeValues": {":one": {"N": "1"}},
        }
    }


def trace_context(tenant: str) -> str:
    """The `traceparent` of each request of the tenant over HTTP."""
    return f"00-{hashlib.sha256(tenant.encode()).hexdigest()[:32]}-{'7' * 16}-01"


def _asked_ms(key: str) -> int:
    """When the cancel request was written, which may be later than its own timestamp."""
    name = "cancel_requested_at"
    changes = (change for change in reversed(world().trace.changes) if change.key == key)
    return next(change.at_ms for change in changes if name not in (change.before or {}))


@contextmanager
def running(run: Run, *, limit_key: str | None = None) -> Iterator[HandlerRun]:
    here = world()
    task = here.scheduler.current
    if task is None:
        raise AssertionError("a handler runs in a process")
    item = here.jobs.items.get((f"{run.tenant}#{run.job_id}",), {})
    claimed_ms = int(item.get("claimed_at", {"N": "0"})["N"])
    life = (f"{run.tenant}#{run.job_id}", round(run.submitted_at.timestamp() * 1000))
    seen = HandlerRun(
        job_id=run.job_id,
        tenant=run.tenant,
        kind=item.get("type", {"S": ""})["S"],
        lane=item.get("lane", {"S": ""})["S"],
        attempt=run.attempt,
        max_attempts=run.max_attempts,
        group=run.group,
        limit_key=limit_key,
        by=task.process.name,
        found=_found(task.process),
        owner=item.get("owner", {"S": ""})["S"],
        claimed_ms=claimed_ms,
        began_ms=here.scheduler.now_ms,
        deadline_ms=run.deadline.timestamp() * 1000 - task.process.skew_ms,
        lease_ends_ms=int(item.get("due", {"N": "0"})["N"]),
        traceparent=run.traceparent,
        trace=item.get("trace", {"S": ""})["S"],
        submitted_ms=life[1],
        signals=dict(run.signals),
        waited_for=run.waited_for,
        timed_out=run.timed_out,
        resumed_from=run.resumed_from if isinstance(run.resumed_from, int) else 0,
        saved_before=max((one.saved for one in here.runs if (one.key, one.submitted_ms) == life), default=0),
        # Before this run was claimed, by any clock.
        asked_to_end="cancel_requested_at" in item and _asked_ms(life[0]) < claimed_ms - 2 * LARGEST_SKEW_MS,
    )
    here.runs.append(seen)
    here.log(task.process.name, f"runs {run.job_id}, attempt {run.attempt}")
    try:
        yield seen
    finally:
        seen.ended_ms = here.scheduler.now_ms
        if task.process.alive:
            _spoil(task.process)
            for look in here.run_end_watchers:
                look(seen)


def _found(process: Process) -> str:
    if process.streams_closed:
        return "closed streams"
    return _LEFT if _LEFT in process.environment and process.left_in != process.invocations else ""


def _spoil(process: Process) -> None:
    """At the end of a handler: the handlers beside it began before."""
    here = world()
    if here.faults.occurs(Fault.SPOILED):
        if here.scheduler.random.random() < 0.5:
            process.streams_closed = True
        else:
            process.environment[_LEFT] = "here"
            process.left_in = process.invocations


def crash_process() -> None:
    """Kill the current process, as running out of memory does."""
    here = world()
    task = here.scheduler.current
    if task is None:
        raise AssertionError("a handler runs in a process")
    here.log(task.process.name, "*killed by its handler")
    here.faults.count(Fault.POISON)
    here.scheduler.kill(task.process)
    raise Killed
