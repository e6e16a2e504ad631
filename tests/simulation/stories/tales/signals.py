"""Signals: jobs that wait for something outside."""

from functools import partial
from typing import Any

from tests.simulation.stories.operator_tools import tried
from tests.simulation.stories.stage import BOB, TENANT, Stage
from tidemill import composition


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


def a_signal_that_comes_early(stage: Stage) -> None:
    job = _waits(stage, 1)
    _signal(stage, job, "answer-0", None)
    _signal(stage, job, "other", [1, 2])
    stage.passes(4)
    stage.get(f"/jobs/{job}")


def a_signal_that_comes_while_the_job_runs(stage: Stage) -> None:
    job = _waits(stage, 1, fails=5)
    stage.passes(4)
    _signal(stage, job, "answer-0", 7)
    stage.passes(12)
    stage.get(f"/jobs/{job}")


def a_wait_whose_time_ends(stage: Stage) -> None:
    """The job is parked meanwhile, and has its message again before its time ends."""
    job = _waits(stage, 2, seconds=20)
    stage.passes(4)
    _signal(stage, job, "answer-1", "too early")
    stage.passes(1000)
    stage.wakes()
    stage.passes(300)
    stage.get(f"/jobs/{job}")


def a_long_wait_that_a_signal_ends(stage: Stage) -> None:
    """The job is parked meanwhile."""
    job = stage.post("/jobs", {"type": "sim.waits", "payload": {"count": 1, "seconds": 60}}, key="one")
    stage.passes(4)
    stage.get(f"/jobs/{job['id']}")
    _signal(stage, job["id"], "answer-0", "yes")
    stage.passes(4)


def an_input_that_is_missing(stage: Stage) -> None:
    job = stage.post("/jobs", {"type": "sim.asks", "payload": {}}, key="one")["id"]
    stage.passes(4)
    _signal(stage, job, "address", "wrong")
    stage.passes(4)
    _signal(stage, job, "address", "wrong")
    _signal(stage, job, "address", "right")
    stage.passes(4)
    stage.get(f"/jobs/{job}")


def an_input_that_never_comes(stage: Stage) -> None:
    job = stage.post("/jobs", {"type": "sim.asks", "payload": {}}, key="one")["id"]
    stage.passes(12)
    stage.post(f"/jobs/{job}/redrive")


def a_signal_that_is_refused(stage: Stage) -> None:
    job = stage.post("/jobs", {"type": "sim.waits", "payload": {}, "delay_seconds": 60}, key="one")["id"]
    _signal(stage, job, "Wrong", 1)
    _signal(stage, job, "x" * 33, 1)
    _signal(stage, job, "foreign", 1, tenant=BOB)
    _signal(stage, "none", "answer-0", 1)

    def many() -> list[Any]:
        control = composition.parts().control
        return [control.signal(TENANT, job, f"{number}", data=number) and number for number in range(17)]

    stage.operate("sends too many", many)


def a_signal_of_a_program_that_is_no_json(stage: Stage) -> None:
    job = stage.post("/jobs", {"type": "sim.waits", "payload": {}, "delay_seconds": 60}, key="one")["id"]

    def act() -> object:
        signal = partial(composition.parts().control.signal, TENANT, job, "answer-0")
        return [tried(signal, data) for data in ({1}, b"1")]

    stage.operate("sends what JSON cannot hold", act)


def a_signal_with_a_large_value(stage: Stage) -> None:
    job = stage.post("/jobs", {"type": "sim.waits", "payload": {}, "delay_seconds": 60}, key="one")["id"]
    _signal(stage, job, "x" * 32, "x" * 4094)
    _signal(stage, job, "larger", "x" * 4095)
    _signal(stage, job, "not-ascii", "é" * 683)
