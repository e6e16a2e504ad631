"""What undoes a job, or supersedes it."""

from typing import Any

from tests.simulation.stories.stage import BOB, Stage


def _books(stage: Stage, key: str = "one", group: str | None = None, **plan: Any) -> str:
    body = {"type": "sim.books", "payload": plan} | ({"group": group} if group else {})
    job: str = stage.post("/jobs", body, key=key)["id"]
    return job


def a_job_that_is_undone(stage: Stage) -> None:
    job = _books(stage, count=1)
    stage.post(f"/jobs/{job}/undo")
    stage.passes(4)
    stage.post(f"/jobs/{job}/undo", tenant=BOB)
    undo = stage.post(f"/jobs/{job}/undo")
    stage.post(f"/jobs/{job}/undo")
    stage.passes(2)
    stage.get(f"/jobs/{job}")
    stage.post(f"/jobs/{undo['id']}/undo")


def _corrects(stage: Stage, earlier: str, key: str, **more: Any) -> str:
    body = {"type": "sim.rebooks", "payload": {"count": 1}, "supersedes": earlier} | more
    answer = stage.post("/jobs", body, key=key)
    return str(answer.get("id"))


def a_correction_of_a_job_that_has_not_begun(stage: Stage) -> None:
    stage.post("/jobs", {"type": "sim.books", "payload": {}, "delay_seconds": 3600}, key="one")
    correction = _corrects(stage, "one", "two")
    _corrects(stage, "one", "two")
    stage.passes(4)
    stage.get(f"/jobs/{correction}")
