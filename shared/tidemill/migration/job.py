"""The migration: a job that rewrites the payloads of a job type with a function of the app."""

import importlib
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

from pydantic import BaseModel, Field

from tidemill import Continue, Lane, PermanentJobError, Run, job_type
from tidemill.application.operations.migration import LONGEST_PAUSE, MOST_PASSES, Change, Migration, Progress
from tidemill.domain.attempt.retry import LARGEST_MAX_HOPS
from tidemill.names import LARGEST_MAX_ATTEMPTS, MIGRATION_TENANT, MIGRATION_TYPE, RECONCILE_READ_UNITS
from tidemill.system import clock

#: So much of a run is kept back to finish the job in progress and to save.
_RESERVE: Final = 0.3
_FIRST_PAUSE: Final = timedelta(minutes=1)


class MigrationRequest(BaseModel):
    #: The job type.
    type: str
    #: `module:function`. The function takes a payload, a dict, and returns the new one.
    function: str = Field(pattern=r"^[A-Za-z_][\w.]*:[A-Za-z_]\w*$")
    #: The ended jobs instead of the live ones.
    ended: bool = False
    dry_run: bool = False
    #: The most jobs per second.
    rate: int = Field(ge=1)
    #: The most read units per second that the scan takes.
    read_units: int = Field(default=RECONCILE_READ_UNITS, ge=1)


@job_type(
    MIGRATION_TYPE,
    payload=MigrationRequest,
    lane=Lane.BULK,
    max_attempts=LARGEST_MAX_ATTEMPTS,
    max_hops=LARGEST_MAX_HOPS,  # each run that has no time left is a hop
    retention_days=30,
)
def migrate(payload: MigrationRequest, run: Run) -> Continue | dict[str, Any]:
    """Its result is the progress of the last pass, as `Progress.as_json`."""
    from tidemill import composition  # noqa: PLC0415 - the command line reads the declaration without Powertools

    if run.tenant != MIGRATION_TENANT:
        # The function may be any of the code, so only operators choose it: those who can write the table.
        raise PermanentJobError("only `tidemill migrate` may submit this type")
    change = _function(payload.function)
    migrator = composition.parts().migrator(rate=payload.rate, read_units=payload.read_units)
    whole = run.deadline - clock.now()

    def time_left() -> timedelta:
        return run.deadline - clock.now() - whole * _RESERVE

    def save(progress: Progress) -> None:
        run.checkpoint(progress.as_json(), done=progress.seen)

    def failed(tenant: str, job_id: str, error: str) -> None:
        run.log.warning("payload not migrated", extra={"migrated_tenant": tenant, "migrated_job": job_id, "why": error})

    progress = Progress.of_json(run.resumed_from or {})
    if progress.complete:
        progress = progress.next_pass()
    migration = Migration(type=payload.type, ended=payload.ended, dry_run=payload.dry_run)
    progress = migrator.run(migration, change, progress, time_left=time_left, save=save, failed=failed)
    if not progress.complete:
        return Continue(progress.as_json())
    if progress.left and not payload.dry_run and progress.number < MOST_PASSES:
        pause = min(_FIRST_PAUSE * 2 ** (progress.number - 1), LONGEST_PAUSE)
        return Continue(progress.as_json(), after=pause)
    return progress.as_json()


def _function(name: str) -> Change:
    """Raises an error that is retried: an older version of the code may run this job, and lack the function."""
    module, _, attribute = name.partition(":")
    found: Callable[[dict[str, Any]], dict[str, Any]] = getattr(importlib.import_module(module), attribute)
    return found
