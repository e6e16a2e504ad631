"""Jobs that share a call of their handler, or that are claimed and settled together; and steps."""

from collections.abc import Sequence
from typing import Any

from tests.simulation.stories.stage import Mishap, Stage


def _together(stage: Stage, type_: str, plans: Sequence[dict[str, Any]], **more: Any) -> list[str]:
    jobs = [
        {"type": type_, "payload": plan, "idempotency_key": f"job-{number}"} | more for number, plan in enumerate(plans)
    ]
    answer = stage.post("/jobs/batch", {"jobs": jobs})
    return [each["job"]["id"] for each in answer["jobs"]]


def jobs_that_share_a_call(stage: Stage) -> None:
    _together(stage, "sim.batched", [{"seconds": 1}, {"key": "chains"}])
    stage.passes(3)


def a_job_that_fails_in_a_shared_call(stage: Stage) -> None:
    _together(
        stage, "sim.batched-in-pairs", [{"key": "never"}, {}, {"key": "miscounts", "fails": 1}, {"key": "snoozes"}]
    )
    stage.passes(3)


def a_shared_call_that_fails(stage: Stage) -> None:
    """Each job runs alone next, and one of them fails again."""
    _together(stage, "sim.batched", [{}, {"key": "raises", "fails": 2}])
    stage.passes(5)


def a_write_that_is_refused_in_a_shared_settle(stage: Stage) -> None:
    _together(stage, "sim.batched", [{}, {"key": "refused", "fails": 1}])
    stage.passes(3)


def writes_that_cannot_be_in_one_transaction(stage: Stage) -> None:
    _together(stage, "sim.batched", [{"key": "tallies"}, {"key": "tallies"}])
    stage.passes(3)


def jobs_that_are_claimed_and_settled_together(stage: Stage) -> None:
    _together(stage, "sim.grouped", [{"count": 1}, {"count": 2}, {"fails": 1}])
    stage.passes(4)


def jobs_that_are_claimed_together_while_one_is_cancelled(stage: Stage) -> None:
    jobs = _together(stage, "sim.grouped-effect", [{}, {}, {}])
    stage.post(f"/jobs/{jobs[1]}/cancel")
    stage.next_call("work-default", "BatchExecuteStatement", Mishap.THROTTLED)
    stage.passes(4)


def a_job_with_steps_that_fails_between_them(stage: Stage) -> None:
    job = stage.post("/jobs", {"type": "sim.stepwise", "payload": {"count": 3, "fails": 1, "seconds": 1}}, key="one")
    stage.passes(40)
    stage.get(f"/jobs/{job['id']}")
