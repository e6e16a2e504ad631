"""What `explain` says of batches, flows and bookings, of jobs that have ended, and of odd waits."""

from tests.simulation.stories.operator_tools import explains, spaced
from tests.simulation.stories.stage import TENANT, Stage
from tidemill import composition
from tidemill.application.job_ids import node_job_id


def explained_nodes_that_have_no_job(stage: Stage) -> None:
    """And their flow, which waits, is cancelled, and ends."""
    nodes = [
        {"name": "dead", "type": "sim.permanent", "payload": {}},
        {"name": "slow", "type": "sim.plain", "payload": {"seconds": 9}},
        {"name": "later", "type": "sim.plain", "after": ["slow"]},
        {"name": "skipped", "type": "sim.plain", "after": [{"node": "dead", "on_failure": "skip"}]},
    ]
    flow = stage.post("/flows", {"nodes": nodes}, key="one")
    stage.passes(6)
    explains(stage, flow["id"], stopped=True)

    def node() -> object:
        started = composition.parts().store.get(TENANT, flow["id"])
        return started and node_job_id(started, "skipped")

    explains(stage, stage.operate("asks for the node that is skipped", node))
    stage.post(f"/flows/{flow['id']}/cancel")
    explains(stage, flow["id"])
    stage.passes(15)
    explains(stage, flow["id"])


def an_explained_batch(stage: Stage) -> None:
    batch = stage.post("/batches", {}, key="one")
    empty = stage.post("/batches", {}, key="two")
    stage.post("/jobs", {"type": "sim.permanent", "batch": batch["id"]}, key="dead")
    stage.post("/jobs", {"type": "sim.effect", "delay_seconds": 12, "batch": batch["id"]}, key="later")
    stage.passes(4)
    explains(stage, batch["id"], stopped=True)
    for each in (batch, empty):
        stage.post(f"/batches/{each['id']}/close")
    stage.passes(6)
    explains(stage, batch["id"])
    explains(stage, empty["id"])
    stage.passes(25)
    explains(stage, batch["id"])


def an_explained_booking(stage: Stage) -> None:
    job = stage.post("/jobs", {"type": "sim.books", "payload": {}}, key="one")
    stage.passes(4)
    explains(stage, job["id"])
    stage.post(f"/jobs/{job['id']}/undo")
    explains(stage, job["id"])


def explained_events(stage: Stage) -> None:
    heard = stage.post("/events", {"type": "sim.happened", "data": {"count": 1}}, key="one")
    stage.passes(5)
    explains(stage, heard["id"])


def explained_jobs_that_run_again_later(stage: Stage) -> None:
    """One has asked for it, and one was redriven."""
    snoozing = stage.post("/jobs", {"type": "sim.snooze", "payload": {"count": 5, "seconds": 1}}, key="1")
    dead = stage.post("/jobs", {"type": "sim.permanent", "payload": {}}, key="2")
    stage.passes(4)
    explains(stage, snoozing["id"])
    stage.post(f"/jobs/{dead['id']}/redrive")
    explains(stage, dead["id"])


def an_explained_job_that_expired(stage: Stage) -> None:
    old = stage.post("/jobs", {"type": "sim.effect", "max_age_seconds": 0.5}, key="1")
    stage.passes(10)
    explains(stage, old["id"])


def explained_jobs_of_a_limit_that_was_lowered(stage: Stage) -> None:
    """A run was slow. Two others take the slots that are left, and the last waits."""
    plan = {"key": "k"}
    for seconds in (0.5, 0.5, 5.0):
        stage.post("/jobs", {"type": "sim.adaptive", "payload": {**plan, "seconds": seconds}})
        stage.passes(4)
    stage.passes(8)
    jobs = [
        stage.post("/jobs", {"type": "sim.adaptive", "payload": {**plan, "seconds": 20, "count": int(key)}}, key=key)
        for key in spaced(stage, "1234")
    ]
    stage.passes(4)
    explains(stage, jobs[-1]["id"])


def explained_jobs_of_a_group_whose_turn_has_come(stage: Stage) -> None:
    """Publish has no record of the end of the first yet."""
    first = stage.post("/jobs", {"type": "sim.plain", "payload": {}, "group": "g"}, key="1")
    second = stage.post("/jobs", {"type": "sim.plain", "payload": {}, "group": "g"}, key="2")
    stage.post(f"/jobs/{first['id']}/cancel")
    explains(stage, second["id"], stopped=True)
