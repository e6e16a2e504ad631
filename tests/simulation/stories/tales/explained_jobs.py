"""Why a job does not run, asked at each moment of its life."""

from tests.simulation.stories.operator_tools import explains, set_setting, spaced
from tests.simulation.stories.stage import Mishap, Stage


def an_explained_job_that_starts_later(stage: Stage) -> None:
    body = {"type": "sim.effect", "payload": {"seconds": 30}, "delay_seconds": 1_500, "max_age_seconds": 4_000}
    job = stage.post("/jobs", body, key="one")
    explains(stage, job["id"], stopped=True)
    stage.passes(1_510)
    explains(stage, job["id"], stopped=True)
    stage.wakes()
    stage.passes(10)
    explains(stage, job["id"])
    stage.post(f"/jobs/{job['id']}/cancel", {})
    explains(stage, job["id"])
    stage.passes(60)
    explains(stage, job["id"])


def an_explained_job_that_fails_and_dies(stage: Stage) -> None:
    job = stage.post("/jobs", {"type": "sim.urgent", "payload": {"fails": 9}}, key="one")
    set_setting(stage, "types.sim.urgent.max_attempts", 2, by="mia", reason="it calls too often", seconds=3_600)
    explains(stage, job["id"])
    stage.passes(400)
    explains(stage, job["id"])


def an_explained_job_whose_worker_is_killed(stage: Stage) -> None:
    body = {"type": "sim.effect", "payload": {}, "deadline": "2049-01-01T00:00:00Z"}
    job = stage.post("/jobs", body, key="one")
    stage.next_call("work-default", "TransactWriteItems", Mishap.KILLED_BEFORE)
    stage.passes(10)
    explains(stage, job["id"])
    stage.passes(30)
    explains(stage, job["id"], stopped=True)
    stage.passes(160)
    explains(stage, job["id"])


def explained_jobs_of_a_group_that_a_dead_one_blocks(stage: Stage) -> None:
    first = stage.post("/jobs", {"type": "sim.blocking", "payload": {"fails": 2, "seconds": 8}, "group": "g"}, key="1")
    second = stage.post("/jobs", {"type": "sim.plain", "payload": {}, "group": "g"}, key="2")
    stage.passes(5)
    explains(stage, second["id"])
    stage.passes(100)
    explains(stage, second["id"])
    explains(stage, first["id"])


def explained_jobs_that_wait_for_a_limit(stage: Stage) -> None:
    body = {"type": "sim.limited", "payload": {"key": "a", "seconds": 9}}
    jobs = [stage.post("/jobs", body, key=key) for key in spaced(stage, "12")]
    stage.passes(5)
    explains(stage, jobs[1]["id"], stopped=True)
    stage.passes(10)
    explains(stage, jobs[1]["id"])


def an_explained_job_that_waits_for_a_rate(stage: Stage) -> None:
    jobs = [stage.post("/jobs", {"type": "sim.metered", "payload": {}}, key=key) for key in spaced(stage, "12")]
    stage.passes(5)
    explains(stage, jobs[1]["id"])


def an_explained_job_that_waits_for_a_signal(stage: Stage) -> None:
    job = stage.post("/jobs", {"type": "sim.waits", "payload": {"count": 1, "seconds": 20}}, key="one")
    stage.passes(5)
    explains(stage, job["id"], stopped=True)
    stage.post(f"/jobs/{job['id']}/signals/answer-0", {"colour": "blue"}, key="s")
    explains(stage, job["id"])


def an_explained_job_that_is_debounced(stage: Stage) -> None:
    body = {
        "type": "sim.debounced",
        "payload": {"count": 1},
        "debounce_seconds": 60,
        "debounce_key": "seven",
        "debounce_max_seconds": 90,
        "replace": "payload",
    }
    job = stage.post("/jobs", body)
    explains(stage, job["id"])
    stage.passes(40)
    stage.post("/jobs", {**body, "payload": {"count": 2}})
    explains(stage, job["id"])


def an_explained_flow_with_one_node(stage: Stage) -> None:
    flow = stage.post("/flows", {"nodes": [{"name": "a", "type": "sim.plain", "payload": {"seconds": 3}}]}, key="one")
    stage.passes(4)
    explains(stage, flow["id"])
    stage.passes(6)
    explains(stage, flow["id"])
