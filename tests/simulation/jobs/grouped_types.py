"""Job types whose jobs are claimed and settled together."""

import time
from datetime import timedelta
from typing import Any

from tests.simulation.jobs.handler_runs import BrokenError, effect, running
from tests.simulation.jobs.job_types import Plan
from tidemill import Done, Run, Snooze, job_type


def _work(plan: Plan, run: Run) -> None:
    time.sleep(plan.seconds)
    if run.attempt <= plan.fails:
        raise BrokenError(f"attempt {run.attempt}")


@job_type("sim.grouped", payload=Plan, max_attempts=3, backoff_seconds=1, backoff_cap_seconds=20, commit="grouped")
def grouped(plan: Plan, run: Run) -> Any:
    with running(run):
        _work(plan, run)
        if plan.key and not run.hops:
            return Snooze(timedelta(seconds=1))
        return {"n": plan.count, "padding": plan.padding}


@job_type("sim.grouped-effect", payload=Plan, max_attempts=3, backoff_cap_seconds=20, commit="grouped")
def grouped_effect(plan: Plan, run: Run) -> Done:
    """A transaction settles it, so it is only claimed with others."""
    with running(run):
        _work(plan, run)
        return Done(writes=[effect(run)])
