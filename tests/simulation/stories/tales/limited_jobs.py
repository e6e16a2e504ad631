"""Jobs whose key has no free slot, or no start left, wait in a line."""

from tests.simulation.stories.stage import Stage


def a_rate_and_slots_together(stage: Stage) -> None:
    """One start each 20 seconds, for all tenants."""
    stage.post("/jobs", {"type": "sim.metered", "payload": {"seconds": 5}})
    stage.passes(3)
    stage.post("/jobs", {"type": "sim.metered"}, tenant="111122223333:AROABBB")
    stage.passes(40)


def an_adaptive_limit_shrinks_when_a_job_is_slow(stage: Stage) -> None:
    """Its number is 2 after a fast run. A run of seven seconds is above the target of two."""
    for seconds in (0.5, 7.0):
        stage.post("/jobs", {"type": "sim.adaptive", "payload": {"key": "k", "seconds": seconds}})
        stage.passes(4)
    stage.passes(20)
