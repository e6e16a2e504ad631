"""Jobs that call a service which slows down with each further call, with and without a limit that adapts to it."""

from tests.simulation.jobs.handler_runs import effect, running
from tests.simulation.jobs.job_types import Plan
from tests.simulation.world.installed_patches import world
from tidemill import Adaptive, Done, Run, job_type

_ATTEMPTS = 20
_BACKOFF_CAP_SECONDS = 20


@job_type(
    "sim.calls",
    payload=Plan,
    max_attempts=_ATTEMPTS,
    backoff_cap_seconds=_BACKOFF_CAP_SECONDS,
    concurrency_per_key=Adaptive(floor=1, ceiling=30, target_seconds=3),
    across_tenants=True,
)
def calls(_plan: Plan, run: Run) -> Done:
    return _call(run)


@job_type("sim.calls_freely", payload=Plan, max_attempts=_ATTEMPTS, backoff_cap_seconds=_BACKOFF_CAP_SECONDS)
def calls_freely(_plan: Plan, run: Run) -> Done:
    return _call(run)


def _call(run: Run) -> Done:
    with running(run):
        world().downstreams["payments"].call()
        return Done(writes=[effect(run)])
