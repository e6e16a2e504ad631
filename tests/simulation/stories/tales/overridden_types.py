"""Options of job types and shared limits that operators change, and a check of types that are not deployed yet."""

from typing import Any

from tests.simulation.actors.operator_objects import configurator
from tests.simulation.stories.operator_tools import explains, set_setting
from tests.simulation.stories.stage import BOB, TENANT, Stage
from tidemill import composition
from tidemill.application.model_check import ModelCheck
from tidemill.domain.waiting import Line
from tidemill.system import clock


def a_type_whose_attempts_are_fewer_by_now(stage: Stage) -> None:
    """Its job has failed once when an operator allows no second attempt."""
    job = stage.post("/jobs", {"type": "sim.urgent", "payload": {"fails": 9}}, key="1")
    stage.passes(4)
    set_setting(stage, "types.sim.urgent.max_attempts", 1)
    stage.passes(120)
    stage.get(f"/jobs/{job['id']}")


def a_type_that_gets_other_waits_a_time_and_a_limit(stage: Stage) -> None:
    """The second job waits for the first, which fails, and overruns its time of three seconds with its next attempt."""
    for option, value in (
        ("backoff_seconds", 5),
        ("backoff_cap_seconds", 6.5),
        ("timeout_seconds", 3),
        ("concurrency_per_key", 1),
        ("rate_per_key", {"count": 30, "period_seconds": 60}),
    ):
        set_setting(stage, f"types.sim.steps.{option}", value, seconds=600, wait=0)
    stage.passes(6)
    stage.operate("looks at the overrides", lambda: configurator().acting().overrides(clock.now()))
    first = stage.post("/jobs", {"type": "sim.steps", "payload": {"count": 4, "seconds": 2}}, key="1")
    second = stage.post("/jobs", {"type": "sim.steps", "payload": {}}, key="2", tenant=TENANT)
    stage.passes(5)
    explains(stage, second["id"])
    stage.passes(40)
    stage.get(f"/jobs/{first['id']}")


def a_shared_limit_with_more_room(stage: Stage) -> None:
    """Both of its jobs run at once. An override of the limit of the type does nothing."""
    set_setting(stage, "limits.carrier.concurrency_per_key", 2, wait=0)
    set_setting(stage, "types.sim.ships.concurrency_per_key", 1)
    stage.post("/jobs", {"type": "sim.ships", "payload": {"key": "k", "seconds": 5}})
    stage.post("/jobs", {"type": "sim.ships", "payload": {"key": "k", "seconds": 1}}, tenant=BOB)
    stage.passes(10)


def a_tenant_with_a_cap_of_its_own(stage: Stage) -> None:
    """Another one has none by its own cap, and the weight of the first does not count."""
    for name, value in (
        ("caps.default", 2),
        (f"caps.{TENANT}", 1),
        (f"caps.{BOB}", None),
        (f"weights.{TENANT}", 2),
    ):
        set_setting(stage, name, value, wait=0)
    stage.passes(6)
    for tenant in (TENANT, TENANT, BOB, BOB, BOB):
        stage.post("/jobs", {"type": "sim.plain", "payload": {"seconds": 3}}, tenant=tenant)
    stage.passes(12)


def live_jobs_that_a_new_version_is_compared_with(stage: Stage) -> None:
    """As `tidemill check`. Two payloads do not fit their model, one is gone, and the new code lacks one type."""
    bodies: list[dict[str, Any]] = [
        {"type": "sim.limited", "payload": {"key": "a", "seconds": 9}},
        {"type": "sim.ships", "payload": {"key": "b", "seconds": 9}},
        {"type": "sim.plain", "payload": {}, "delay_seconds": 900},
        *[{"type": "sim.effect", "payload": {}, "delay_seconds": 900}] * 4,
    ]
    jobs = [stage.post("/jobs", body)["id"] for body in bodies]
    stage.passes(4)
    for job, changes in (
        (jobs[2], {"type": {"S": "sim.gone"}}),
        (jobs[3], {"payload": {"S": '{"count":"x","fails":null}'}}),
        (jobs[4], {"payload": {"S": "[]"}}),
        (jobs[5], {"payload_at": {"S": "item/lost"}}),
    ):
        item: Any = stage.world.jobs.items[f"{TENANT}#{job}",]
        item |= changes

    def act() -> object:
        check = ModelCheck(composition.known_job_types(), composition.parts().payloads, most_of_a_type=3)
        for job in jobs:
            found = composition.parts().store.get(TENANT, job)
            assert found
            check.take(found)
        lines = sorted([*check.lines, Line.for_pause("type=x")], key=str)
        return [*check.types.values()], [[str(line), check.limit_of(line)] for line in lines]

    stage.operate("compares", act)
