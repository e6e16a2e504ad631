"""The lives of single jobs."""

from tests.simulation.stories.stage import Mishap, Stage


def a_job_that_succeeds(stage: Stage) -> None:
    job = stage.post("/jobs", {"type": "sim.effect", "payload": {"seconds": 1}, "tags": ["b", "a"]}, key="one")
    stage.post("/jobs", {"type": "sim.effect", "payload": {"seconds": 1}, "tags": ["b", "a"]}, key="one")
    stage.passes(10)
    stage.get(f"/jobs/{job['id']}")


def a_job_that_fails_and_then_succeeds(stage: Stage) -> None:
    job = stage.post("/jobs", {"type": "sim.urgent", "payload": {"fails": 1}}, key="one")
    stage.passes(150)
    stage.get(f"/jobs/{job['id']}")


def a_job_whose_worker_is_killed(stage: Stage) -> None:
    job = stage.post("/jobs", {"type": "sim.effect", "payload": {}}, key="one")
    stage.next_call("work-default", "TransactWriteItems", Mishap.KILLED_BEFORE)
    stage.passes(400)
    stage.get(f"/jobs/{job['id']}")
