"""Job types with steps. Each run records the calls of its steps, and what they have returned."""

import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final

from tests.simulation.jobs.handler_runs import BrokenError, HandlerRun, effect, running
from tests.simulation.jobs.job_types import Plan
from tidemill import Continue, Done, Run, Snooze, WaitFor, job_type

_A_MINUTE: Final = timedelta(minutes=1)


def take_steps(plan: Plan, run: Run, seen: HandlerRun, names: Sequence[str]) -> Any:
    """Some runs end after their first step. Attempt n fails after n steps."""

    def act(name: str, *, key: str) -> dict[str, Any]:
        seen.called.append((name, key))
        time.sleep(plan.seconds)
        return {"name": name, "by": seen.owner}

    for number, name in enumerate(names, start=1):
        returned = run.step(name, act, name, key=run.step_key(name))
        seen.returned.append((name, returned))
        if number == run.attempt <= plan.fails:
            raise BrokenError(f"attempt {run.attempt}")
        if number == 1 and plan.key and not run.hops:
            return {"continues": Continue(), "snoozes": Snooze(_A_MINUTE), "waits": WaitFor("never", _A_MINUTE)}[
                plan.key
            ]
    return Done(result=[name for name, _ in seen.returned], writes=[effect(run)])


@job_type("sim.stepwise", payload=Plan, max_attempts=4, backoff_cap_seconds=20)
def stepwise(plan: Plan, run: Run) -> Any:
    with running(run) as seen:
        return take_steps(plan, run, seen, [f"step-{number}" for number in range(plan.count)])


@job_type("sim.reordered", payload=Plan, max_attempts=4, backoff_cap_seconds=20)
def reordered(plan: Plan, run: Run) -> Any:
    """From its second run on, it asks for its steps in another order, as another version may."""
    with running(run) as seen:
        names = [f"step-{number}" for number in range(plan.count)]
        return take_steps(plan, run, seen, names if run.attempt == 1 and not run.hops else names[::-1])
