"""Pauses, breakers and caps: what holds jobs back, and how their lines move on."""

from collections.abc import Callable

from tests.simulation.stories.operator_tools import (
    breakers,
    explains,
    remove_setting,
    set_setting,
    spaced,
)
from tests.simulation.stories.stage import TENANT, Stage
from tidemill import composition
from tidemill.application.breakers.breakers import Breakers
from tidemill.domain.breakers.breaker import BreakerPolicy
from tidemill.domain.job import Job


def a_paused_type_that_is_resumed(stage: Stage) -> None:
    set_setting(stage, "pauses.type=sim.effect", {"rate": 1}, reason="its service moves")
    jobs = [stage.post("/jobs", {"type": "sim.effect", "payload": {}}, key=key) for key in spaced(stage, "12")]
    stage.passes(3)
    explains(stage, jobs[1]["id"])
    remove_setting(stage, "pauses.type=sim.effect", reason="it has moved")
    explains(stage, jobs[0]["id"], stopped=True)
    stage.wakes()
    explains(stage, jobs[1]["id"])


def a_breaker_that_closes_after_a_probe(stage: Stage) -> None:
    job = stage.post("/jobs", {"type": "sim.dependent", "payload": {}}, key="1")
    _calls_fail(stage, job["id"], "abc")
    stage.passes(5)
    explains(stage, job["id"])
    stage.passes(10)
    breakers(stage, "payments")


def _calls_fail(stage: Stage, job_id: str, calls: str) -> None:
    _breaker(
        stage, job_id, lambda seen, policy, job: [seen.failed(policy, job, call=call, error="E") for call in calls]
    )


def _breaker(stage: Stage, job_id: str, act: Callable[[Breakers, BreakerPolicy, Job], object]) -> None:
    """What workers do with the breaker, in one process."""

    def told() -> object:
        policy = composition.known_job_types().get("sim.dependent").depends_on[0]
        job = composition.parts().store.get(TENANT, job_id)
        assert job
        return act(composition.parts().breakers, policy, job)

    stage.operate("acts as a worker", told)
