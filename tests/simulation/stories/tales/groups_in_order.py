"""The jobs of a group run one after another, in the order submitted."""

from typing import Any

from tests.simulation.stories.stage import Stage


def the_jobs_of_a_group_run_in_order(stage: Stage) -> None:
    """The first fails once, and holds back the second."""
    stage.post("/jobs", _of_group("sim.plain", count=1, fails=1))
    second = stage.post("/jobs", _of_group("sim.effect", count=2))
    stage.passes(20)
    stage.get(f"/jobs/{second['id']}")


def _of_group(kind: str, **plan: Any) -> dict[str, Any]:
    return {"type": kind, "group": "orders", "payload": plan}
