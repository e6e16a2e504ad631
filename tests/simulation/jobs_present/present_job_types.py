"""A type that the next version drops, and one whose payload it changes, so that each version rejects the other's."""

import time
from typing import Any

from pydantic import BaseModel, ConfigDict

from tests.simulation.jobs.event_types import EVENT, hearing
from tests.simulation.jobs.handler_runs import effect, running
from tests.simulation.jobs.job_types import Plan
from tests.simulation.jobs.step_types import take_steps
from tidemill import Done, Run, consumes, job_type


class Invoice(BaseModel):
    model_config = ConfigDict(strict=True)

    amount: int


@job_type("sim.dropped", payload=Plan)
def dropped(plan: Plan, run: Run) -> Done:
    with running(run):
        time.sleep(plan.seconds)
        return Done(writes=[effect(run)])


@job_type("sim.changed", payload=Invoice, max_attempts=3, backoff_cap_seconds=20)
def changed(_invoice: Invoice, run: Run) -> Done:
    with running(run):
        return Done(writes=[effect(run)])


@job_type("sim.lengthened", payload=Plan, max_attempts=4, backoff_cap_seconds=20)
def lengthened(plan: Plan, run: Run) -> Any:
    """The next version adds a step behind the last one."""
    with running(run) as seen:
        return take_steps(plan, run, seen, [f"step-{number}" for number in range(plan.count)])


#: A consumer that the deployment removes.
hears_present = consumes(EVENT)(hearing("sim.hears-present"))
