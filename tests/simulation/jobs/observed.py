"""What a run leaves behind: its effect in a table of its own, and its beginning and end in the world's memory."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from shared.jobs import Run
from tests.simulation.world.faults import Fault
from tests.simulation.world.installed import world
from tests.simulation.world.lambdas import LARGEST_SKEW_MS
from tests.simulation.world.scheduler import Killed


@dataclass(slots=True)
class Observed:
    """One run of a handler."""

    job_id: str
    tenant: str
    attempt: int
    max_attempts: int
    group: str | None
    limit_key: str | None
    by: str
    began_ms: int
    #: As the document said when it began.
    lease_ends_ms: int
    asked_to_end: bool
    ended_ms: int | None = None

    @property
    def key(self) -> str:
        return f"{self.tenant}#{self.job_id}"


def effect(run: Run) -> dict[str, Any]:
    """Counts up, so that a second commit would show."""
    return {
        "Update": {
            "TableName": "effects",
            "Key": {"pk": {"S": f"{run.tenant}#{run.job_id}"}},
            "UpdateExpression": "ADD #count :one",
            "ExpressionAttributeNames": {"#count": "count"},
            "ExpressionAttributeValues": {":one": {"N": "1"}},
        }
    }


@contextmanager
def running(run: Run, *, limit_key: str | None = None) -> Iterator[None]:
    here = world()
    task = here.scheduler.current
    if task is None:
        raise AssertionError("a handler runs in a process")
    item = here.jobs.items.get((f"{run.tenant}#{run.job_id}",), {})
    asked_ms = int(item.get("cancel_requested_at", {"N": "0"})["N"])
    claimed_ms = int(item.get("claimed_at", {"N": "0"})["N"])
    seen = Observed(
        job_id=run.job_id,
        tenant=run.tenant,
        attempt=run.attempt,
        max_attempts=run.max_attempts,
        group=run.group,
        limit_key=limit_key,
        by=task.process.name,
        began_ms=here.scheduler.now_ms,
        lease_ends_ms=int(item.get("due", {"N": "0"})["N"]),
        # Asked before this run was claimed, by any clock.
        asked_to_end=0 < asked_ms < claimed_ms - 2 * LARGEST_SKEW_MS,
    )
    here.runs.append(seen)
    here.say(task.process.name, f"runs {run.job_id}, attempt {run.attempt}")
    try:
        yield
    finally:
        seen.ended_ms = here.scheduler.now_ms


def end_process() -> None:
    """As running out of memory does."""
    here = world()
    task = here.scheduler.current
    if task is None:
        raise AssertionError("a handler runs in a process")
    here.say(task.process.name, "*killed by its handler")
    here.weather.note(Fault.POISON)
    here.scheduler.kill(task.process)
    raise Killed
