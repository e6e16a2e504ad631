"""Job types that share a limit: one for all lanes and tenants, and an adaptive one for each lane."""

from tests.simulation.jobs.handler_runs import effect, running
from tests.simulation.jobs.job_types import Plan, take_step
from tidemill import Adaptive, Done, Lane, Run, SharedLimit, job_type

_CARRIER = SharedLimit("carrier", concurrency_per_key=1, across_tenants=True)
_COURIER = SharedLimit("courier", concurrency_per_key=Adaptive(floor=1, ceiling=3, target_seconds=2), per_lane=True)


@job_type("sim.ships", payload=Plan, max_attempts=3, backoff_cap_seconds=20, limit=_CARRIER, key=lambda plan: plan.key)
def ships(plan: Plan, run: Run) -> Done:
    return _deliver(plan, run)


@job_type(
    "sim.tracks",
    payload=Plan,
    max_attempts=3,
    backoff_cap_seconds=20,
    lane=Lane.BULK,
    limit=_CARRIER,
    key=lambda plan: plan.key,
)
def tracks(plan: Plan, run: Run) -> Done:
    return _deliver(plan, run)


@job_type("sim.drives", payload=Plan, max_attempts=3, backoff_cap_seconds=20, limit=_COURIER, key=lambda plan: plan.key)
def drives(plan: Plan, run: Run) -> Done:
    return _deliver(plan, run)


@job_type(
    "sim.fetches", payload=Plan, max_attempts=3, backoff_cap_seconds=20, limit=_COURIER, key=lambda plan: plan.key
)
def fetches(plan: Plan, run: Run) -> Done:
    return _deliver(plan, run)


def _deliver(plan: Plan, run: Run) -> Done:
    with running(run, limit_key=plan.key):
        take_step(plan, run)
        return Done(writes=[effect(run)])
