"""What a caller may submit, how the engine answers, and what it keeps."""

from datetime import UTC, datetime, timedelta
from typing import Final

from tests.simulation.stories.stage import Stage

_OTHER: Final = "111122223333:AROABBB"
_EFFECT: Final = {"type": "sim.effect"}


def several_jobs_of_one_request_are_inserted_together(stage: Stage) -> None:
    """One of them exists already, one has the key of another body, and one has no valid body."""
    stage.post("/jobs", {"type": "sim.plain", "payload": {"count": 1}}, key="old")
    stage.passes(5)
    stage.post(
        "/jobs/batch",
        {
            "jobs": [
                {"type": "sim.plain", "payload": {"count": 1}, "idempotency_key": "old"},
                {"type": "sim.plain", "payload": {"count": 2}, "idempotency_key": "old"},
                {"type": "sim.unheard-of"},
                {"type": "sim.plain", "payload": {"count": "many"}, "tags": ["A"]},
                {"type": "sim.effect", "payload": {"count": 3}, "delay_seconds": 1_000},
                {"type": "sim.plain", "payload": {"count": 4}, "tags": ["last"], "delay_seconds": 2_000},
                {"type": "sim.plain", "payload": {"count": 5}, "group": "orders", "delay_seconds": 3_000},
            ]
        },
    )


def jobs_that_begin_later(stage: Stage) -> None:
    """One within the delay of the lane, one a little later, and one at a given time."""
    stage.post("/jobs", {**_EFFECT, "delay_seconds": 900})
    later = stage.post("/jobs", {**_EFFECT, "delay_seconds": 900.001, "tags": ["later"]})
    stage.post("/jobs", {**_EFFECT, "run_at": _at(stage, 1_205.0004), "payload": {"count": 1}}, key="at")
    stage.passes(300)
    stage.wakes()
    stage.passes(500)
    stage.get(f"/jobs/{later['id']}")


def a_key_is_used_again(stage: Stage) -> None:
    """With the same body in other words, and with another one. Only the first makes a job."""
    body = {**_EFFECT, "payload": {"count": 1}, "tags": ["b", "a"], "delay_seconds": 5_000}
    stage.post("/jobs", body, key="k")
    stage.passes(2)
    stage.post("/jobs", {**body, "tags": ["a", "b"], "delay_seconds": 5_000.0}, key="k")
    stage.post("/jobs", {**body, "payload": {"count": 2}}, key="k")
    stage.post("/jobs", {**body, "delay_seconds": 5_001}, key="k")
    stage.post("/jobs", body, key="k", tenant=_OTHER)


def _at(stage: Stage, seconds: float) -> str:
    """So many seconds from now."""
    now = datetime.fromtimestamp(stage.world.scheduler.now_ms / 1000, UTC)
    return (now + timedelta(seconds=seconds)).isoformat()
