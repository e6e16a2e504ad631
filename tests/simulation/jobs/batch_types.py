"""Job types with batch handlers. Each success writes its own effect, and counts in an item that others write too."""

import time
from contextlib import ExitStack
from datetime import timedelta
from typing import Any, Final
from zlib import crc32

from tests.simulation.jobs.handler_runs import crash_process, effect, running
from tests.simulation.jobs.job_types import Plan
from tidemill import Add, Done, PermanentJobError, Run, Snooze, Submission, job_type

_SUMS: Final = 2
#: The same write of each job, which no two of them can have in one transaction.
_TALLY: Final = {
    "Update": {
        "TableName": "effects",
        "Key": {"pk": {"S": "!sum of tallies"}},
        "UpdateExpression": "ADD #count :one",
        "ExpressionAttributeNames": {"#count": "count"},
        "ExpressionAttributeValues": {":one": {"N": "1"}},
    }
}


@job_type("sim.batched", payload=Plan, max_attempts=4, backoff_cap_seconds=20, batch=100)
def batched(plans: list[Plan], runs: list[Run]) -> list[Any]:
    return _call(plans, runs)


@job_type("sim.batched-in-pairs", payload=Plan, max_attempts=3, backoff_cap_seconds=20, timeout_seconds=5, batch=2)
def batched_in_pairs(plans: list[Plan], runs: list[Run]) -> list[Any]:
    return _call(plans, runs)


def _call(plans: list[Plan], runs: list[Run]) -> list[Any]:
    """A plan that fails in a run names how: with its process, with its call, with its outcomes, or by itself."""
    with ExitStack() as stack:
        seen = [stack.enter_context(running(run)) for run in runs]
        for each in seen:
            each.jobs_of_call = len(runs)
        time.sleep(max(plan.seconds for plan in plans))
        failing = {plan.key for plan, run in zip(plans, runs, strict=True) if run.attempt <= plan.fails}
        if "crashes" in failing:
            crash_process()
        for each in seen:
            each.call_failed = bool({"raises", "miscounts"} & failing)
        if "raises" in failing:
            # The error is permanent for one job, but it ends no other.
            said = "never " + " ".join(plan.canary for plan in plans)
            raise PermanentJobError(said) if len(runs) > 1 else plans[0].failure(runs[0])
        sum_of_call = f"!sum {crc32(runs[0].job_id.encode()) % _SUMS}"
        outcomes = [_outcome(plan, run, sum_of_call) for plan, run in zip(plans, runs, strict=True)]
        return outcomes[1:] if "miscounts" in failing else outcomes


def _outcome(plan: Plan, run: Run, sum_of_call: str) -> Any:
    adds = Add("effects", {"pk": {"S": sum_of_call}}, {"count": 1})
    if run.attempt <= plan.fails and plan.key == "refused":
        return Done(writes=[effect(run, refused=True), adds])
    if run.attempt <= plan.fails:
        return plan.failure(run)
    if plan.key == "never":
        return PermanentJobError("never")
    if plan.key == "snoozes" and not run.hops:
        return Snooze(timedelta(seconds=20))
    following = [Submission(type="sim.effect")] if plan.key == "chains" else []
    result = {"id": run.job_id, "attempt": run.attempt, "tallies": plan.key == "tallies", "then": len(following)}
    return Done(
        result=result | plan.secret,
        writes=[effect(run), adds, *([_TALLY] if plan.key == "tallies" else [])],
        then=following,
    )
