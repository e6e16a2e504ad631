"""What a run may end with, and what follows from it."""

from tests.simulation.stories.stage import TENANT, Mishap, Stage


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


def a_job_that_uses_up_its_hops(stage: Stage) -> None:
    """Its type allows eight. It has taken as many before, and takes one more."""
    job = stage.post("/jobs", {"type": "sim.snooze", "payload": {"count": 60}})
    items, key = stage.world.jobs.items, (f"{TENANT}#{job['id']}",)
    items[key] = {**items[key], "hops": {"N": "8"}}
    stage.passes(30)
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


def a_job_that_asks_for_its_steps_in_another_order(stage: Stage) -> None:
    """Its second attempt does. No later one could go on behind the recorded step."""
    job = stage.post("/jobs", {"type": "sim.reordered", "payload": {"count": 3, "seconds": 1, "fails": 1}}, key="s")
    stage.passes(20)
    stage.get(f"/jobs/{job['id']}")


def a_job_of_steps_that_is_cancelled(stage: Stage) -> None:
    """The step that runs is recorded, and the next one is not taken."""
    job = stage.post("/jobs", {"type": "sim.stepwise", "payload": {"count": 4, "seconds": 2}}, key="s")
    stage.passes(5)
    stage.post(f"/jobs/{job['id']}/cancel")
    stage.passes(10)
    stage.get(f"/jobs/{job['id']}")


def a_step_that_cannot_be_recorded(stage: Stage) -> None:
    """It runs again with the next attempt."""
    job = stage.post("/jobs", {"type": "sim.stepwise", "payload": {"count": 1, "seconds": 2}}, key="s")
    stage.passes(4)
    stage.next_call("work-default", "UpdateItem", Mishap.THROTTLED, tries=3)
    stage.passes(60)
    stage.get(f"/jobs/{job['id']}")


def jobs_of_steps_that_end_a_run_in_between(stage: Stage) -> None:
    """One continues, one snoozes and one waits, each after its first step."""
    for key in ("continues", "snoozes", "waits"):
        stage.post("/jobs", {"type": "sim.stepwise", "payload": {"count": 2, "key": key}}, key=key)
    stage.passes(90)


def a_job_that_is_cancelled_after_its_worker_was_killed(stage: Stage) -> None:
    """The next run ends before its handler is called."""
    job = stage.post("/jobs", {"type": "sim.effect", "payload": {"seconds": 2}})
    stage.next_call("work-default", "TransactWriteItems", Mishap.KILLED_BEFORE)
    stage.passes(10)
    stage.post(f"/jobs/{job['id']}/cancel")
    stage.passes(300)
    stage.get(f"/jobs/{job['id']}")


def a_job_that_says_when_to_try_again(stage: Stage) -> None:
    job = stage.post("/jobs", {"type": "sim.later", "payload": {"fails": 1, "seconds": 1.5}})
    stage.passes(120)
    stage.get(f"/jobs/{job['id']}")


def jobs_that_give_up(stage: Stage) -> None:
    """One says why, and one cancels itself."""
    jobs = [
        stage.post("/jobs", {"type": "sim.give-up", "payload": {"count": 1}}),
        stage.post("/jobs", {"type": "sim.give-up"}),
    ]
    stage.passes(10)
    for job in jobs:
        stage.get(f"/jobs/{job['id']}")


def a_job_with_an_error_that_no_retry_mends(stage: Stage) -> None:
    job = stage.post("/jobs", {"type": "sim.permanent", "payload": {"seconds": 1}})
    stage.passes(10)
    stage.get(f"/jobs/{job['id']}")


def a_job_that_uses_up_its_attempts(stage: Stage) -> None:
    job = stage.post("/jobs", {"type": "sim.urgent", "payload": {"fails": 9}}, key="dies")
    stage.passes(300)
    stage.get(f"/jobs/{job['id']}")


def a_job_that_crashes_its_process_each_time(stage: Stage) -> None:
    job = stage.post("/jobs", {"type": "sim.poison", "payload": {"fails": 9, "seconds": 1}})
    stage.passes(600)
    stage.get(f"/jobs/{job['id']}")


def a_handler_that_overruns_its_time(stage: Stage) -> None:
    """Nothing stops its thread, so its process ends."""
    job = stage.post("/jobs", {"type": "sim.overrun", "payload": {"key": "k", "fails": 1, "seconds": 6}})
    stage.passes(60)
    stage.get(f"/jobs/{job['id']}")


def a_job_that_is_followed_by_two(stage: Stage) -> None:
    job = stage.post("/jobs", {"type": "sim.chain", "payload": {"count": 2, "padding": "x" * 2_000}, "tags": ["chain"]})
    stage.passes(2.3)
    stage.get(f"/jobs/{job['id']}")


def a_job_whose_writes_are_refused(stage: Stage) -> None:
    job = stage.post("/jobs", {"type": "sim.refused", "payload": {"fails": 1}})
    stage.passes(40)
    stage.get(f"/jobs/{job['id']}")
