"""The job of a flow: it starts the nodes that follow no other, waits until all have ended, and counts them.

In between, the ends of nodes start the others: see `tidemill.application.flows.flow_advance`. Each run looks at all
nodes, so it repairs what was lost. A redrive of the flow redrives the dead nodes because of which it died, and waits
again.
"""

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from pydantic import BaseModel

from tidemill import Cancelled, Continue, Done, GiveUp, Run, WaitFor, job_type
from tidemill.domain.attempt.retry import LARGEST_MAX_HOPS
from tidemill.domain.batches.composite_cancels import is_cancelled, pause_of_cancelled
from tidemill.domain.errors import TransactionConflictError
from tidemill.domain.flows.flows import LONGEST_FLOW, LOOK, NODES_KEPT, began_at, over_age, pause
from tidemill.domain.records import replace
from tidemill.names import FLOW_TYPE, LARGEST_MAX_ATTEMPTS
from tidemill.system import clock

if TYPE_CHECKING:
    from tidemill.application.flows.flow_look import Looked

#: The share of the time of a run in which it begins to start, cancel and redrive nodes.
_SHARE: Final = 0.7
#: The failed nodes that the reason of a death names.
_MOST_NAMED: Final = 10


class StartedFlow(BaseModel):
    """The payload of a flow that `tidemill.application.flows.flows.start_flow` has checked."""

    nodes: list[dict[str, Any]]
    #: The facts of the types of the nodes when the flow was accepted, by type.
    types: dict[str, dict[str, Any]] = {}


@job_type(
    FLOW_TYPE,
    payload=StartedFlow,
    max_attempts=LARGEST_MAX_ATTEMPTS,
    max_hops=LARGEST_MAX_HOPS,  # each look is a hop
    retention_days=30,
    # A request to look waits for the next run.
    backoff_cap_seconds=30,
)
def run_flow(_flow: StartedFlow | None, run: Run) -> WaitFor | Continue | Done | GiveUp | Cancelled:
    """Its result is the number of nodes by what became of them."""
    from tidemill import composition  # noqa: PLC0415 - clients read the declaration without Powertools

    look = composition.parts().flow_look
    flow = look.flow(run.tenant, run.job_id)
    if not is_cancelled(flow) and over_age(flow, now=clock.now()):
        # A node whose document is gone would start once more.
        return GiveUp(f"it began {NODES_KEPT.days} days ago, and its nodes are kept no longer: start a new flow")
    ends_at = clock.now() + (run.deadline - clock.now()) * _SHARE
    looked = look(flow, lambda: clock.now() < ends_at)
    if is_cancelled(flow):
        after = pause_of_cancelled(flow, jobs=len(looked.resolutions), now=clock.now())
        return Cancelled() if looked.final else Continue(None, after=after)
    # While nodes are added, others write the flow, too. Then the next look shows the progress.
    with suppress(TransactionConflictError):
        run.checkpoint(done=looked.ended, total=len(looked.resolutions))
    if looked.at_rest and not looked.again and not looked.busy:
        return _failed(looked) if looked.failed else Done(looked.counts)
    if clock.now() - began_at(flow) > LONGEST_FLOW:
        return GiveUp(f"not all nodes have ended within {LONGEST_FLOW.days} days")
    if looked.again or run.attempt > 1:
        # A wait gives back one attempt, and this all of them: a long flow must not use them up.
        return Continue(None)
    return WaitFor(LOOK, timeout=pause(flow, nodes=len(looked.resolutions), now=clock.now(), busy=looked.busy))


# Ten flows of one batch, parsed at once, would take the memory of their worker.
run_flow = replace(run_flow, reads_payload=False)


def _failed(looked: "Looked") -> GiveUp:
    named = ", ".join(looked.to_blame[:_MOST_NAMED])
    more = ", …" if len(looked.to_blame) > _MOST_NAMED else ""
    return GiveUp(f"failed nodes: {named}{more}; redrive the flow to redrive those that are dead, and to go on")
