"""Bursts: many submissions, one job."""

from typing import Any

from tests.simulation.stories.operator_tools import set_setting
from tests.simulation.stories.stage import Mishap, Stage


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


def a_burst_that_replaces_its_payload(stage: Stage) -> None:
    job = _submits(stage, 1, replace="payload", debounce_max_seconds=12)
    stage.passes(5)
    _submits(stage, 2, replace="payload")
    _submits(stage, 2, replace="payload")
    stage.passes(30)
    stage.get(f"/jobs/{job['id']}")


def a_burst_that_replaces_a_large_payload(stage: Stage) -> None:
    _submits(stage, 1, padding=500, replace="payload")
    stage.passes(1)
    _submits(stage, 2, padding=501, replace="payload")
    stage.next_call("submit", "UpdateItem", Mishap.THROTTLED)
    _submits(stage, 3, replace="payload")
    stage.passes(20)


def a_submission_after_the_job_of_a_burst_has_begun(stage: Stage) -> None:
    stage.post("/jobs", _run(1, 6))
    stage.passes(6)
    stage.post("/jobs", _run(2, 0))
    stage.post("/jobs", _run(3, 0))
    stage.passes(12)


def _run(count: int, seconds: float) -> dict[str, Any]:
    payload = {"count": count, "seconds": seconds, "key": "k"}
    return {"type": "sim.debounced-limited", "payload": payload, "debounce_seconds": 2, "debounce_key": "k"}


def a_burst_of_an_hour(stage: Stage) -> None:
    """Its job is parked, and a submission moves it in the index of parked jobs."""
    job = _submits(stage, 1, seconds=3000, max_age_seconds=60, replace="payload")
    stage.passes(60)
    _submits(stage, 2, seconds=3000, max_age_seconds=120, replace="payload")
    stage.passes(1)
    _submits(stage, 3, seconds=10, replace="payload")
    stage.post(f"/jobs/{job['id']}/cancel")
    _submits(stage, 4, replace="payload")


def a_burst_whose_message_is_lost(stage: Stage) -> None:
    """Its job is late. It keeps its time if a submission asks for now, and all keep it after the end of the burst."""
    _submits(stage, 1, seconds=5, debounce_max_seconds=9, max_age_seconds=60)
    stage.passes(3)
    stage.world.lanes["default"].messages.clear()
    stage.passes(3)
    _submits(stage, 2, seconds=0, max_age_seconds=60)
    _submits(stage, 3, seconds=1, max_age_seconds=90)
    stage.passes(0.9)
    stage.world.lanes["default"].messages.clear()
    stage.passes(9)
    _submits(stage, 4, seconds=5, replace="payload", max_age_seconds=60)


def a_burst_whose_job_is_paused(stage: Stage) -> None:
    set_setting(stage, "pauses.type=sim.debounced", {}, seconds=60)
    job = _submits(stage, 1, seconds=2)
    stage.passes(4)
    _submits(stage, 2, seconds=2, replace="payload")
    stage.get(f"/jobs/{job['id']}")


def a_burst_that_is_refused(stage: Stage) -> None:
    stage.post("/jobs", {"type": "sim.debounced", "payload": {}, "debounce_seconds": 2, "group": "g"}, key="one")
    _submits(stage, 1, seconds=-1)
    _submits(stage, 1, debounce_max_seconds=2)
    _submits(stage, 1, debounce_key="")
    stage.post("/jobs", {"type": "sim.debounced", "payload": {}, "debounce_seconds": 2, "replace": "payload"})
    stage.post("/jobs", {"type": "sim.debounced", "payload": {}, "debounce_key": "k"})
    stage.post("/jobs", {"type": "sim.unique", "payload": {}, "debounce_seconds": 2})


def a_paused_burst_that_moves_before_it_is_parked(stage: Stage) -> None:
    """Publish sees its first time, and parks it until its present one."""
    set_setting(stage, "pauses.type=sim.debounced", {})
    job = _submits(stage, 1, seconds=60)
    stage.passes(0.5)
    _submits(stage, 1, seconds=60)
    stage.passes(3)
    stage.get(f"/jobs/{job['id']}")
