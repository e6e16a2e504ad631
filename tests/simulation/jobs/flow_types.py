"""The job type of the nodes of flows. It reads the results of its parents, and may add nodes that follow it."""

import time
from typing import Any

from tests.simulation.jobs.handler_runs import BrokenError, effect, running
from tests.simulation.jobs.job_types import Plan
from tests.simulation.world.installed_patches import world
from tidemill import Done, Run, composition, job_type
from tidemill.domain.errors import FlowRefusedError, TidemillError
from tidemill.domain.flows.flows import Node
from tidemill.domain.submission.submission import Submission

NODE: str = "sim.node"
#: A node adds this one, which follows it.
ADDED: str = "{node}-child"


@job_type(NODE, payload=Plan, max_attempts=2, backoff_cap_seconds=30)
def node(plan: Plan, run: Run) -> Done:
    """`key` is its name. It fails `fails` times in all, also if it is redriven in between."""
    with running(run):
        time.sleep(plan.seconds)
        if sum(each.key == f"{run.tenant}#{run.job_id}" for each in world().runs) <= plan.fails:
            raise plan.failure(run)
        if plan.count:
            _add(plan, run)
        found = {name: (result or {}).get("node") for name, result in run.parents.items()}
        return Done(result={"node": plan.key, "parents": found} | plan.secret, writes=[effect(run)])


def _add(plan: Plan, run: Run) -> None:
    added: dict[str, Any] = {"key": ADDED.format(node=plan.key)} | plan.secret
    child = Node(added["key"], Submission(type=NODE, payload=added), after=[plan.key])
    try:
        composition.parts().flow_growth.add_nodes(run.tenant, str(run.flow), [child])
    except FlowRefusedError:
        # It was cancelled, or is over since its time ended.
        return
    except TidemillError as error:
        raise BrokenError(f"attempt {run.attempt}") from error
