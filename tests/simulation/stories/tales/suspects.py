"""Jobs that may have killed their worker, and workers that lose their job."""

from tests.simulation.stories.stage import TENANT, Stage
from tidemill import composition
from tidemill.system import clock


def a_worker_finds_its_job_taken_over(stage: Stage) -> None:
    """The document has another owner by then, so nothing that it writes counts."""
    job = stage.post("/jobs", {"type": "sim.steps", "payload": {"count": 3, "seconds": 3}})
    stage.passes(5)
    items, key = stage.world.jobs.items, (f"{TENANT}#{job['id']}",)
    items[key] = {**items[key], "owner": {"S": "another-worker"}}
    stage.passes(30)
    stage.get(f"/jobs/{job['id']}")


def a_suspect_runs_alone(stage: Stage) -> None:
    """Its worker was killed, so it waits until the other job of its batch has ended."""
    # Long enough that both messages are there.
    stage.world.mappings["default"].poll_ms = 3_000
    stage.post("/jobs", {"type": "sim.poison", "payload": {"fails": 1}})
    stage.passes(150)
    stage.post("/jobs", {"type": "sim.plain", "payload": {"seconds": 4}, "delay_seconds": 32})
    stage.passes(60)


def a_lost_job_is_nudged(stage: Stage) -> None:
    """Its message is gone. Reconcile finds it late, and publish sends another one."""
    job = stage.post("/jobs", {"type": "sim.effect", "delay_seconds": 5})
    stage.passes(3)
    stage.world.lanes["default"].messages.clear()
    stage.passes(60)

    def nudge() -> object:
        store = composition.parts().store
        found = store.get(TENANT, job["id"])
        assert found
        store.resend(found, now=clock.now())
        return found.due

    stage.operate("sends its message again", nudge)
    stage.passes(10)
