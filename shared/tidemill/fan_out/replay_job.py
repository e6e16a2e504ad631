"""The job of `tidemill replay`: it creates jobs of one consumer for stored events."""

from typing import Any, Final

from pydantic import AwareDatetime, BaseModel, Field

from tidemill import Continue, Lane, PermanentJobError, Run, job_type
from tidemill.application.events.replay import Progress, Replay
from tidemill.domain.attempt.retry import LARGEST_MAX_HOPS
from tidemill.names import LARGEST_MAX_ATTEMPTS, RECONCILE_READ_UNITS, REPLAY_TENANT, REPLAY_TYPE
from tidemill.system import clock

#: So much of a run is kept back to finish the event in progress and to save.
_RESERVE: Final = 0.3
#: The pattern of the name of a replay. With the prefix, the name is a tag of its jobs.
NAME_PATTERN: Final = r"[a-z0-9._-]{0,24}"


class ReplayRequest(BaseModel):
    """The payload of a replay: the members of `tidemill.application.events.replay.Replay`, with its rates."""

    consumer: str
    event: str
    version: int | None = None
    tenant: str | None = None
    since: AwareDatetime
    until: AwareDatetime
    missed: bool = False
    name: str = Field(default="", pattern=f"^{NAME_PATTERN}$")
    dry_run: bool = False
    #: The most events per second.
    rate: int = Field(ge=1)
    #: The most read units per second that a scan takes.
    read_units: int = Field(default=RECONCILE_READ_UNITS, ge=1)

    @property
    def wanted(self) -> Replay:
        chosen = self.model_dump(exclude={"rate", "read_units"})
        return Replay(**chosen)


@job_type(
    REPLAY_TYPE,
    payload=ReplayRequest,
    lane=Lane.BULK,
    max_attempts=LARGEST_MAX_ATTEMPTS,
    max_hops=LARGEST_MAX_HOPS,  # each run that has no time left is a hop
    retention_days=30,
)
def replay(request: ReplayRequest, run: Run) -> Continue | dict[str, Any]:
    """Its result is the progress, as `Progress.as_json`."""
    from tidemill import composition  # noqa: PLC0415 - the command line reads the declaration without Powertools

    if run.tenant != REPLAY_TENANT:
        # It makes jobs of any tenant.
        raise PermanentJobError("only `tidemill replay` may submit this type")
    whole = run.deadline - clock.now()
    parts = composition.parts()
    progress = parts.replayer(tenant=request.tenant, rate=request.rate, read_units=request.read_units).run(
        request.wanted,
        Progress.of_json(run.resumed_from or {}),
        time_left=lambda: run.deadline - clock.now() - whole * _RESERVE,
        save=lambda progress: run.checkpoint(progress.as_json(), done=progress.seen),
    )
    return progress.as_json() if progress.complete else Continue(progress.as_json())


__all__ = ["NAME_PATTERN", "ReplayRequest", "replay"]
