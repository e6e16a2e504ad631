"""What a handler returns in error, and calls to AWS that fail around a run."""

from tests.simulation.stories.stage import Mishap, Stage


def an_answer_is_lost_at_the_claim(stage: Stage) -> None:
    """The retry of the SDK finds what the first call has written."""
    stage.post("/jobs", {"type": "sim.plain", "payload": {"count": 1}})
    stage.next_call("work-default", "UpdateItem", Mishap.ANSWER_LOST)
    stage.passes(10)


def an_answer_is_lost_at_the_settle(stage: Stage) -> None:
    """The retry of the SDK finds what the first call has written."""
    stage.post("/jobs", {"type": "sim.plain", "payload": {"count": 1, "seconds": 2}})
    stage.passes(3)
    stage.next_call("work-default", "UpdateItem", Mishap.ANSWER_LOST)
    stage.passes(10)
