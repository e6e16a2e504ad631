"""What a handler logs carries the fields of its own job, although other handlers run in the same process."""

from tests.simulation.checks.violation import require_in_task
from tests.simulation.jobs.handler_runs import HandlerRun
from tests.simulation.world.world import World
from tidemill.telemetry.handler_stream import HANDLER_FIELDS


class HandlerFieldChecks:
    """Looks at the end of each run, in its thread. Other runs of the process have begun and ended meanwhile."""

    def __init__(self, world: World) -> None:
        self._scheduler = world.scheduler
        world.run_end_watchers.append(self._ended)

    def _ended(self, run: HandlerRun) -> None:
        fields = HANDLER_FIELDS.get() or {}
        own = {"tenant": run.tenant, "job_id": run.job_id, "attempt": run.attempt}
        logged = {name: fields.get(name) for name in own}
        require_in_task(self._scheduler, logged == own, "a handler logs as its job", f"it logs as {logged}", run.key)
