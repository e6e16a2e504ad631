"""Each handler logs as its own job, although others run in its process, and has the trace context of its caller.

Or as the jobs of its call, without the fields of one of them.
"""

from tests.simulation.checks.violation import require_in_task
from tests.simulation.jobs.handler_runs import HandlerRun, trace_context
from tests.simulation.world.world import World
from tidemill.telemetry.handler_stream import HANDLER_FIELDS


class HandlerFieldChecks:
    """Looks at the end of each run, in its thread. Other runs of the process have begun and ended meanwhile."""

    def __init__(self, world: World) -> None:
        self._scheduler = world.scheduler
        world.run_end_watchers.append(self._ended)

    def _ended(self, run: HandlerRun) -> None:
        fields = HANDLER_FIELDS.get() or {}
        own: dict[str, object] = {"tenant": run.tenant, "job_id": run.job_id, "attempt": run.attempt}
        if run.jobs_of_call > 1:
            own = dict.fromkeys(own) | {"tenant": run.tenant, "jobs": run.jobs_of_call, "job_type": run.kind}
        logged = {name: fields.get(name) for name in own}
        require_in_task(self._scheduler, logged == own, "a handler logs as its job", f"it logs as {logged}", run.key)
        # Jobs from Python and from the scheduler have none.
        context = trace_context(run.tenant) if run.trace.startswith("00-") else None
        what = f"it has {run.traceparent}, not {context}"
        require_in_task(self._scheduler, run.traceparent == context, "a run has the trace of its caller", what, run.key)
