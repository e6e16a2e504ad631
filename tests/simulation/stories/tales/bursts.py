"""Bursts: many submissions, one job."""

from typing import Any

from tests.simulation.stories.stage import Stage


def _submits(stage: Stage, count: int, *, padding: int = 0, seconds: float = 10, **more: Any) -> Any:
    payload = {"count": count} | ({"padding": "x" * padding} if padding else {})
    body = {"type": "sim.debounced", "payload": payload, "debounce_seconds": seconds}
    return stage.post("/jobs", body | {"debounce_key": "k"} | more)


def a_burst_that_keeps_its_first_payload(stage: Stage) -> None:
    job = _submits(stage, 1)
    _submits(stage, 2)
    stage.passes(4)
    _submits(stage, 3, seconds=2)
    _submits(stage, 4, debounce_max_seconds=5)
    stage.passes(30)
    stage.get(f"/jobs/{job['id']}")
