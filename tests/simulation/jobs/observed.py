"""What a run leaves behind: its effect in a table of its own, and its beginning and end in the world's memory."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from shared.jobs import Run
from tests.simulation.world.installed import world


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
    ended_ms: int | None = None


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
    seen = Observed(
        job_id=run.job_id,
        tenant=run.tenant,
        attempt=run.attempt,
        max_attempts=run.max_attempts,
        group=run.group,
        limit_key=limit_key,
        by=task.process.name,
        began_ms=here.scheduler.now_ms,
    )
    here.runs.append(seen)
    here.say(task.process.name, f"runs {run.job_id}, attempt {run.attempt}")
    try:
        yield
    finally:
        seen.ended_ms = here.scheduler.now_ms
