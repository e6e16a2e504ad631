"""What owners and operators do to single jobs."""

from tests.simulation.stories.stage import Stage


def an_owner_cancels_a_running_job(stage: Stage) -> None:
    """It ends at its next checkpoint. A redrive is refused, since it is not dead."""
    job = stage.post("/jobs", {"type": "sim.steps", "payload": {"count": 4, "seconds": 4}})
    stage.passes(5)
    stage.post(f"/jobs/{job['id']}/cancel")
    stage.post(f"/jobs/{job['id']}/cancel")
    stage.post(f"/jobs/{job['id']}/redrive")
    stage.passes(20)
    stage.get(f"/jobs/{job['id']}")


def an_owner_redrives_a_dead_job(stage: Stage) -> None:
    """The second redrive is refused. The job dies again, and keeps both errors."""
    job = stage.post("/jobs", {"type": "sim.permanent", "payload": {"count": 1}, "tags": ["t"]})
    stage.passes(5)
    stage.post(f"/jobs/{job['id']}/retry")
    stage.post(f"/jobs/{job['id']}/retry")
    stage.passes(5)
    stage.get(f"/jobs/{job['id']}")
