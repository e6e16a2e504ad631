"""An event with three consumers, one of which asks a service outside AWS that may be down or slow."""

from tests.simulation.jobs.handler_runs import effect, running
from tests.simulation.jobs.job_types import Plan
from tests.simulation.world.installed_patches import world
from tidemill import Done, Run, consumes, event_type, job_type

opened = event_type("sim.opened", data=Plan)


@consumes("sim.opened")
@job_type("sim.greets", payload=Plan)
def greets(_plan: Plan, run: Run) -> Done:
    with running(run):
        return Done(writes=[effect(run)])


@consumes("sim.opened")
@job_type("sim.counts", payload=Plan)
def counts(_plan: Plan, run: Run) -> Done:
    with running(run):
        return Done(writes=[effect(run)])


@consumes("sim.opened")
@job_type("sim.consults", payload=Plan, max_attempts=4, concurrency_per_key=2, across_tenants=True)
def consults(_plan: Plan, run: Run) -> Done:
    with running(run):
        world().downstreams["payments"].call()
        return Done(writes=[effect(run)])
