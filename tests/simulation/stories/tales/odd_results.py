"""What a handler returns in error, and calls to AWS that fail around a run."""

from tests.simulation.stories.stage import TENANT, Mishap, Stage


def results_that_cannot_be_stored(stage: Stage) -> None:
    """A value that is not JSON, a follow-up of an unknown type, and too many writes: no retry helps."""
    for value in ("result-no-json", "follow-up-of-no-type", "too-many-writes"):
        stage.post("/jobs", {"type": "sim.unstorable", "payload": {"key": value}}, key=value)
    stage.passes(2.3)


def a_checkpoint_that_is_too_large(stage: Stage) -> None:
    """The largest one is stored, and one byte more is refused."""
    for value in ("largest-checkpoint", "checkpoint-too-large"):
        stage.post("/jobs", {"type": "sim.unstorable", "payload": {"key": value}}, key=value)
    stage.passes(12)


def a_follow_up_has_the_key_of_another_job(stage: Stage) -> None:
    """That one has the same body, so it stands for the follow-up."""
    stage.post("/jobs", {"type": "sim.unstorable", "payload": {"key": "follow-up-that-exists"}})
    stage.passes(10)


def a_follow_up_has_a_key_of_another_body(stage: Stage) -> None:
    stage.post("/jobs", {"type": "sim.plain", "payload": {"count": 1, "fails": 0}, "delay_seconds": 900}, key="taken")
    job = stage.post("/jobs", {"type": "sim.unstorable", "payload": {"key": "follow-up-of-a-taken-key"}})
    stage.passes(2.3)
    stage.get(f"/jobs/{job['id']}")


def an_answer_is_lost_at_the_claim(stage: Stage) -> None:
    """The retry of the SDK finds what the first call has written."""
    stage.post("/jobs", {"type": "sim.plain", "payload": {"count": 1}})
    stage.next_call("work-default", "UpdateItem", Mishap.ANSWER_LOST)
    stage.passes(10)


def no_answer_comes_at_the_claim(stage: Stage) -> None:
    """It has been written, so the worker takes it back. The message waits, and comes again."""
    job = stage.post("/jobs", {"type": "sim.plain", "payload": {"count": 1}})
    stage.next_call("work-default", "UpdateItem", Mishap.ANSWER_LOST, tries=3)
    stage.passes(60)
    stage.get(f"/jobs/{job['id']}")


def an_answer_is_lost_at_the_settle(stage: Stage) -> None:
    """The retry of the SDK finds what the first call has written."""
    stage.post("/jobs", {"type": "sim.plain", "payload": {"count": 1, "seconds": 2}})
    stage.passes(3)
    stage.next_call("work-default", "UpdateItem", Mishap.ANSWER_LOST)
    stage.passes(10)


def the_settle_is_throttled_until_the_worker_gives_up(stage: Stage) -> None:
    """The message waits until the lease ends. The next worker runs the job again."""
    job = stage.post("/jobs", {"type": "sim.effect", "payload": {"seconds": 1}})
    stage.next_call("work-default", "TransactWriteItems", Mishap.THROTTLED, tries=12)
    stage.passes(60)
    stage.get(f"/jobs/{job['id']}")


def the_settle_meets_other_transactions(stage: Stage) -> None:
    """Of an item that its handler writes. The run is given back, and its attempt with it."""
    job = stage.post("/jobs", {"type": "sim.effect", "payload": {"seconds": 1}})
    held = stage.world.dynamodb.table("effects").held
    held.add((f"{TENANT}#{job['id']}",))
    stage.passes(5)
    held.clear()
    stage.passes(20)
    stage.get(f"/jobs/{job['id']}")


def a_claim_is_throttled(stage: Stage) -> None:
    """All tries, also those of the call that would take it back. The message waits."""
    stage.post("/jobs", {"type": "sim.plain", "payload": {"count": 1}})
    stage.next_call("work-default", "UpdateItem", Mishap.THROTTLED, tries=6)
    stage.passes(30)


def the_payload_of_a_job_cannot_be_read_for_a_while(stage: Stage) -> None:
    """The job has not failed: it is held and keeps its attempt."""
    job = stage.post("/jobs", {"type": "sim.effect", "payload": {"padding": "f" * 200_000}})
    stage.next_call("work-default", "GetObject", Mishap.THROTTLED, tries=3)
    stage.passes(60)
    stage.get(f"/jobs/{job['id']}")


def a_worker_is_killed_after_its_settle(stage: Stage) -> None:
    """The message comes again, and is refused."""
    job = stage.post("/jobs", {"type": "sim.effect", "payload": {"count": 1}})
    stage.next_call("work-default", "TransactWriteItems", Mishap.KILLED_AFTER)
    stage.passes(400)
    stage.get(f"/jobs/{job['id']}")
