"""An event type, a job that publishes it, and its consumers: two that work, one of which filters, and a broken one."""

import time
from typing import Any, Final

from tests.simulation.jobs.handler_runs import effect, running
from tests.simulation.jobs.job_types import Plan
from tidemill import Done, Event, JobType, Run, SnsRecord, consumes, event_source, event_type, job_type

EVENT: Final = "sim.happened"
#: The values of `count` that the filter of `sim.hears-some` takes.
SOME: Final = (0, 2)

happened = event_type(EVENT, data=Plan)


@event_source("topic", publishes=EVENT)
def topic(record: SnsRecord) -> dict[str, Any]:
    data: dict[str, Any] = record.json()
    return data


def hearing(name: str) -> JobType:
    """A job type that takes the data of the event."""

    def hear(plan: Plan, run: Run) -> Done:
        with running(run):
            time.sleep(plan.seconds)
            return Done(writes=[effect(run)])

    return job_type(name, payload=Plan, max_attempts=4, backoff_cap_seconds=30)(hear)


hears = consumes(EVENT)(hearing("sim.hears"))
hears_some = consumes(EVENT, filter={"count": SOME})(hearing("sim.hears-some"))


@consumes(EVENT)
@job_type("sim.deaf", payload=Plan, max_attempts=2, backoff_cap_seconds=5, on_dead="block")
def deaf(plan: Plan, run: Run) -> None:
    """Never succeeds, and then blocks the later events of its group."""
    with running(run):
        raise plan.failure(run)


@job_type("sim.announces", payload=Plan, max_attempts=4, backoff_cap_seconds=30)
def announces(plan: Plan, run: Run) -> Done:
    with running(run):
        if run.attempt <= plan.fails:
            raise plan.failure(run)
        event = Event(type=EVENT, data={"count": plan.count, "padding": plan.padding} | plan.secret, group=run.group)
        return Done(writes=[effect(run)], events=[event])
