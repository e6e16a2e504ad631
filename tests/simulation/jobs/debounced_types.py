"""A job type whose jobs are debounced. Each run records of which submission its payload is."""

import time

from tests.simulation.jobs.handler_runs import BrokenError, effect, running
from tests.simulation.jobs.job_types import Plan
from tidemill import Done, Run, job_type


@job_type("sim.debounced", payload=Plan, max_attempts=3, backoff_cap_seconds=20)
def debounced(plan: Plan, run: Run) -> Done:
    with running(run) as seen:
        seen.submission = plan.count
        time.sleep(plan.seconds)
        if run.attempt <= plan.fails:
            raise BrokenError(f"attempt {run.attempt}")
        return Done(writes=[effect(run)])


@job_type("sim.debounced-limited", payload=Plan, max_attempts=3, concurrency_per_key=1, key=lambda plan: plan.key)
def debounced_limited(plan: Plan, run: Run) -> Done:
    """Its jobs wait for each other, and may take submissions while they do."""
    with running(run, limit_key=plan.key) as seen:
        seen.submission = plan.count
        time.sleep(plan.seconds)
        return Done(writes=[effect(run)])
