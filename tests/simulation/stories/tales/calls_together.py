"""Jobs that share a call of their handler, or that are claimed and settled together; and steps."""

from collections.abc import Sequence
from typing import Any

from tests.simulation.stories.stage import Stage


def _together(stage: Stage, type_: str, plans: Sequence[dict[str, Any]], **more: Any) -> list[str]:
    jobs = [
        {"type": type_, "payload": plan, "idempotency_key": f"job-{number}"} | more for number, plan in enumerate(plans)
    ]
    answer = stage.post("/jobs/batch", {"jobs": jobs})
    return [each["job"]["id"] for each in answer["jobs"]]


def jobs_that_share_a_call(stage: Stage) -> None:
    _together(stage, "sim.batched", [{"seconds": 1}, {"key": "chains"}])
    stage.passes(3)


def jobs_that_are_claimed_and_settled_together(stage: Stage) -> None:
    _together(stage, "sim.grouped", [{"count": 1}, {"count": 2}, {"fails": 1}])
    stage.passes(4)
