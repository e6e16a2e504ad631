"""Events, their consumers, and replays."""

from tests.simulation.stories.stage import Stage


def an_event_of_a_job(stage: Stage) -> None:
    stage.post("/jobs", {"type": "sim.announces", "payload": {"count": 3}, "group": "g"}, key="one")
    stage.passes(2.5)
