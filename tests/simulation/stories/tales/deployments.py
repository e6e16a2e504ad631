"""Two versions of the code at once: what a worker does with jobs of the other one."""

from typing import Any

from tests.simulation.stories.operator_tools import explains, spaced
from tests.simulation.stories.stage import Stage
from tests.simulation.world.code_versions import PRESENT, next_code

_NEXT = next_code(0, 0)
_BROKEN = next_code(0, 0, broken=True)


def a_job_of_a_type_that_its_worker_does_not_know(stage: Stage) -> None:
    """Until its worker has the next version, too."""
    stage.world.rollout.deploy_to(["submit"], _NEXT)
    job = _added(stage, "one")
    stage.passes(8)
    explains(stage, job)
    stage.world.rollout.deploy_to(["work-default"], _NEXT)
    stage.passes(15)
    stage.get(f"/jobs/{job}")


def a_job_of_a_type_that_no_worker_comes_to_know(stage: Stage) -> None:
    stage.world.rollout.deploy_to(["submit"], _NEXT)
    job = _added(stage, "one")
    stage.passes(6_000)
    stage.get(f"/jobs/{job}")


def jobs_of_a_job_file_that_is_broken(stage: Stage) -> None:
    """They wait in a line, and run once it is fixed."""
    stage.world.rollout.deploy_to(["submit"], _NEXT)
    stage.world.rollout.deploy_to(["work-default", "wake"], _BROKEN)
    jobs = [_added(stage, key) for key in spaced(stage, "12")]
    stage.passes(5)
    explains(stage, jobs[1], stopped=True)
    stage.wakes()
    stage.world.rollout.deploy_to(["work-default", "wake", "publish"], _NEXT)
    stage.passes(60)
    stage.wakes()
    explains(stage, jobs[1])
    stage.passes(10)
    stage.get(f"/jobs/{jobs[1]}")


def submissions_while_a_job_file_is_broken(stage: Stage) -> None:
    stage.world.rollout.deploy_to(["submit"], _BROKEN)
    plain, added = {"type": "sim.plain"}, {"type": "sim.added"}
    stage.post("/jobs", {**added, "payload": {}}, key="one")
    stage.post("/events", {"type": "sim.happened", "data": {"count": 1}}, key="event")
    stage.post("/batches", {"on_success": added, "on_failure": plain}, key="batch")
    stage.post("/flows", {"nodes": [{"name": "a", **added}, {"name": "b", **plain}]}, key="flow")


def a_payload_that_the_other_version_refuses(stage: Stage) -> None:
    stage.world.rollout.deploy_to(["submit"], _NEXT)
    job = stage.post("/jobs", {"type": "sim.changed", "payload": {"amount": {"value": 5}}}, key="one")["id"]
    stage.passes(4)
    explains(stage, job)
    stage.world.rollout.deploy_to(["work-default"], _NEXT)
    stage.passes(15)
    stage.get(f"/jobs/{job}")


def steps_of_which_the_other_version_has_one_more(stage: Stage) -> None:
    stage.world.rollout.deploy_to(["work-default"], _NEXT)
    body = {"type": "sim.lengthened", "payload": {"count": 1, "fails": 2, "key": ""}}
    job = stage.post("/jobs", body, key="one")["id"]
    stage.passes(5)
    stage.world.rollout.deploy_to(["work-default"], PRESENT)
    stage.passes(30)
    stage.get(f"/jobs/{job}")


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


def _added(stage: Stage, key: str, **plan: Any) -> str:
    job: str = stage.post("/jobs", {"type": "sim.added", "payload": plan}, key=key)["id"]
    return job
