"""A type that the next version adds, and one whose payload it changes, so that each version rejects the other's."""

import time
from typing import Any

from pydantic import BaseModel, ConfigDict

from tests.simulation.jobs.event_types import EVENT, hearing
from tests.simulation.jobs.handler_runs import BrokenError, effect, running
from tests.simulation.jobs.job_types import Plan
from tests.simulation.jobs.step_types import take_steps
from tidemill import Done, Run, Submission, consumes, job_type


class Amount(BaseModel):
    value: int


class Invoice(BaseModel):
    model_config = ConfigDict(strict=True)

    amount: Amount


#: More attempts than the policy for an unknown type.
@job_type("sim.added", payload=Plan, max_attempts=12, backoff_seconds=1, backoff_cap_seconds=5)
def added(plan: Plan, run: Run) -> Done:
    with running(run):
        time.sleep(plan.seconds)
        if run.attempt <= plan.fails:
            raise BrokenError(f"attempt {run.attempt}")
        following = [Submission(type="sim.added", payload={}, group=run.group) for _ in range(plan.count)]
        return Done(writes=[effect(run)], then=following)


@job_type("sim.changed", payload=Invoice, max_attempts=3, backoff_cap_seconds=20)
def changed(_invoice: Invoice, run: Run) -> Done:
    with running(run):
        return Done(writes=[effect(run)])


@job_type("sim.lengthened", payload=Plan, max_attempts=4, backoff_cap_seconds=20)
def lengthened(plan: Plan, run: Run) -> Any:
    """It has a step more than in the present version."""
    with running(run) as seen:
        return take_steps(plan, run, seen, [f"step-{number}" for number in range(plan.count + 1)])


#: A consumer that the deployment adds.
hears_next = consumes(EVENT)(hearing("sim.hears-next"))
