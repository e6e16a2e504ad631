"""What a run may end with, and what follows from it."""

from tests.simulation.stories.stage import Stage


def a_job_that_snoozes_for_long(stage: Stage) -> None:
    job = stage.post("/jobs", {"type": "sim.snooze", "payload": {"count": 1, "seconds": 20}})
    stage.passes(1_000)
    stage.wakes()
    stage.passes(300)
    stage.get(f"/jobs/{job['id']}")


def a_job_that_continues(stage: Stage) -> None:
    """It has all its attempts again with each page. The second attempt of its last page succeeds."""
    job = stage.post("/jobs", {"type": "sim.continue", "payload": {"count": 1, "seconds": 2, "fails": 1}})
    stage.passes(60)
    stage.get(f"/jobs/{job['id']}")


def a_job_that_saves_checkpoints(stage: Stage) -> None:
    """It overruns its time after three of five, and goes on from there."""
    job = stage.post("/jobs", {"type": "sim.steps", "payload": {"count": 5, "seconds": 6}, "tags": ["long"]})
    stage.passes(12)
    stage.get(f"/jobs/{job['id']}")
    stage.passes(80)
    stage.get(f"/jobs/{job['id']}")


def a_job_of_steps(stage: Stage) -> None:
    """Its first attempt fails after the first step, which is not taken again."""
    job = stage.post("/jobs", {"type": "sim.stepwise", "payload": {"count": 3, "seconds": 1, "fails": 1}}, key="s")
    stage.passes(60)
    stage.get(f"/jobs/{job['id']}")


def a_job_with_an_error_that_no_retry_mends(stage: Stage) -> None:
    job = stage.post("/jobs", {"type": "sim.permanent", "payload": {"seconds": 1}})
    stage.passes(10)
    stage.get(f"/jobs/{job['id']}")


def a_job_that_uses_up_its_attempts(stage: Stage) -> None:
    job = stage.post("/jobs", {"type": "sim.urgent", "payload": {"fails": 9}}, key="dies")
    stage.passes(300)
    stage.get(f"/jobs/{job['id']}")
