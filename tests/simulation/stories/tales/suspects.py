"""Jobs that may have killed their worker, and workers that lose their job."""

from tests.simulation.stories.stage import TENANT, Mishap, Stage
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


def a_suspect_waits_for_too_long(stage: Stage) -> None:
    """The other job of its batch runs until its time is up, so another worker gets the suspect."""
    stage.world.mappings["default"].poll_ms = 3_000
    stage.post("/jobs", {"type": "sim.poison", "payload": {"fails": 1}})
    stage.passes(150)
    stage.post("/jobs", {"type": "sim.plain", "payload": {"seconds": 40}, "delay_seconds": 32})
    stage.passes(120)


def a_message_of_a_job_that_was_cancelled(stage: Stage) -> None:
    """And one that comes before its time, one that cannot be read, and one of a newer version."""
    job = stage.post("/jobs", {"type": "sim.effect", "delay_seconds": 5})
    stage.passes(3)
    lane = stage.world.lanes["default"]
    (message,) = lane.messages
    lane.send("{no json")
    lane.send(message.body.replace('"generation":1', '"generation":2'))
    lane.send(message.body.replace('"schema":1', '"schema":9'))
    lane.send(message.body)
    stage.post(f"/jobs/{job['id']}/cancel")
    stage.passes(10)


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


def a_submit_is_throttled(stage: Stage) -> None:
    """All tries. The caller submits again with the same key."""
    stage.next_call("submit", "PutItem", Mishap.THROTTLED, tries=3)
    stage.post("/jobs", {"type": "sim.effect", "delay_seconds": 1_000}, key="k")
    stage.next_call("submit", "PutItem", Mishap.ANSWER_LOST)
    stage.post("/jobs", {"type": "sim.effect", "delay_seconds": 1_000}, key="k")
    stage.next_call("submit", "PutItem", Mishap.ANSWER_LOST, tries=3)
    stage.post("/jobs", {"type": "sim.effect", "delay_seconds": 2_000})
