"""Signals: jobs that wait for something outside."""

from typing import Any

from tests.simulation.stories.stage import Stage


def _waits(stage: Stage, count: int, **more: Any) -> str:
    body = {"type": "sim.waits", "payload": {"count": count, "seconds": 1} | more}
    job: str = stage.post("/jobs", body, key="one")["id"]
    return job


def _signal(stage: Stage, job: str, name: str, data: Any, **more: Any) -> None:
    stage.post(f"/jobs/{job}/signals/{name}", data, **more)


def a_job_that_waits_for_a_signal(stage: Stage) -> None:
    job = _waits(stage, 1)
    stage.passes(4)
    stage.get(f"/jobs/{job}")
    _signal(stage, job, "answer-0", {"by": "ada"})
    _signal(stage, job, "answer-0", {"by": "ada"})
    _signal(stage, job, "answer-0", {"by": "bob"})
    stage.passes(4)
    stage.get(f"/jobs/{job}")
    _signal(stage, job, "answer-1", {"by": "ada"})
