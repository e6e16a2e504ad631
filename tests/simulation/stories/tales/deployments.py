"""Two versions of the code at once: what a worker does with jobs of the other one."""

from tests.simulation.stories.stage import Stage
from tests.simulation.world.code_versions import next_code


def documents_and_messages_of_a_newer_version(stage: Stage) -> None:
    """Workers of the present one leave them, callers are asked to come later."""
    stage.world.rollout.deploy_to(["submit", "publish"], next_code(1, 1))
    job = stage.post("/jobs", {"type": "sim.plain", "payload": {}}, key="one")["id"]
    stage.passes(5)
    stage.get(f"/jobs/{job}")
    stage.post(f"/jobs/{job}/cancel")
    stage.wakes()
    stage.world.rollout.deploy_to(["work-default"], next_code(1, 1))
    stage.passes(60)
