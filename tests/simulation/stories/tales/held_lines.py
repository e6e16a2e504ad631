"""Pauses, breakers and caps: what holds jobs back, and how their lines move on."""

from collections.abc import Callable

from tests.simulation.stories.operator_tools import (
    breakers,
    explains,
    payments_are_down,
    remove_setting,
    set_setting,
    spaced,
    tried,
)
from tests.simulation.stories.stage import BOB, TENANT, Stage
from tidemill import composition
from tidemill.application.breakers import Breakers
from tidemill.domain.breaker import BreakerPolicy
from tidemill.domain.job import Job
from tidemill.system import clock


def a_paused_type_that_is_resumed(stage: Stage) -> None:
    set_setting(stage, "pauses.type=sim.effect", {"rate": 1}, reason="its service moves")
    jobs = [stage.post("/jobs", {"type": "sim.effect", "payload": {}}, key=key) for key in spaced(stage, "12")]
    stage.passes(3)
    explains(stage, jobs[1]["id"])
    remove_setting(stage, "pauses.type=sim.effect", reason="it has moved")
    explains(stage, jobs[0]["id"], stopped=True)
    stage.wakes()
    explains(stage, jobs[1]["id"])


def a_paused_tenant_that_submits_no_further_job(stage: Stage) -> None:
    set_setting(stage, f"pauses.tenant={TENANT}", {"reject_new": True}, seconds=90)
    stage.post("/jobs", {"type": "sim.plain", "payload": {}}, key="1")
    stage.post("/jobs", {"type": "sim.plain", "payload": {}}, key="2", tenant=BOB)
    stage.passes(90)
    stage.post("/jobs", {"type": "sim.plain", "payload": {}}, key="3")


def a_paused_group_and_a_paused_limit(stage: Stage) -> None:
    set_setting(stage, f"pauses.group={TENANT} orders", {}, seconds=40, wait=0)
    set_setting(stage, 'pauses.limit=["sim.limited","a"]', {}, seconds=400)
    grouped = stage.post("/jobs", {"type": "sim.plain", "payload": {}, "group": "orders"}, key="1")
    limited = stage.post("/jobs", {"type": "sim.limited", "payload": {"key": "a"}}, key="2")
    stage.passes(5)
    explains(stage, grouped["id"])
    explains(stage, limited["id"])
    stage.passes(40)
    stage.wakes()
    explains(stage, grouped["id"])


def a_breaker_that_opens_for_a_job_which_fails(stage: Stage) -> None:
    payments_are_down(stage, 9)
    job = stage.post("/jobs", {"type": "sim.dependent", "payload": {}}, key="1")
    _calls_fail(stage, job["id"], "ab")
    stage.passes(8)
    explains(stage, job["id"])
    breakers(stage, "payments", "unknown")


def a_breaker_that_closes_after_a_probe(stage: Stage) -> None:
    job = stage.post("/jobs", {"type": "sim.dependent", "payload": {}}, key="1")
    _calls_fail(stage, job["id"], "abc")
    stage.passes(5)
    explains(stage, job["id"])
    stage.passes(10)
    breakers(stage, "payments")


def a_breaker_whose_probe_fails(stage: Stage) -> None:
    payments_are_down(stage, 15)
    job = stage.post("/jobs", {"type": "sim.dependent", "payload": {}}, key="1")
    _calls_fail(stage, job["id"], "abc")
    stage.passes(14)
    explains(stage, job["id"])
    breakers(stage)


def a_breaker_and_its_window(stage: Stage) -> None:
    """Failures of two windows, a repeated report, and successes that outweigh failures."""
    job = stage.post("/jobs", {"type": "sim.dependent", "payload": {}, "delay_seconds": 3_000}, key="1")

    def act(seen: Breakers, policy: BreakerPolicy, job: Job) -> object:
        sleep = stage.world.scheduler.sleep
        told = [
            seen.look("payments").state,
            seen.failed(policy, job, call="a", error="1"),
            seen.failed(policy, job, call="a", error="2"),
        ]
        sleep(31_000)
        told += [seen.failed(policy, job, call="b", error="3"), *(seen.succeeded(policy, job) for _ in range(7))]
        sleep(1_000)
        told += [seen.failed(policy, job, call=call, error="4") for call in "cd"]
        told.append(seen.look("payments"))
        sleep(5_000)
        return told + [seen.failed(policy, job, call=call, error="5") for call in "ef"]

    _breaker(stage, job["id"], act)
    breakers(stage, "payments")


def a_breaker_that_reopens(stage: Stage) -> None:
    job = stage.post("/jobs", {"type": "sim.dependent", "payload": {}, "delay_seconds": 3_000}, key="1")

    def act(seen: Breakers, policy: BreakerPolicy, job: Job) -> object:
        sleep = stage.world.scheduler.sleep
        told: list[object] = [seen.failed(policy, job, call=call, error="1") for call in "abc"]
        told += [seen.would_admit(policy), seen.blocks("payments"), seen.open_for("payments")]
        sleep(10_000)
        told += [seen.would_admit(policy), seen.admits(policy, job), seen.admits(policy, job)]
        sleep(500)
        told += [seen.succeeded(policy, job), seen.look("payments").state, seen.drain_rate("payments", at=clock.now())]
        sleep(25_000)
        told += [seen.drain_rate("payments", at=clock.now())]
        told += [seen.failed(policy, job, call=call, error="2") for call in "def"]
        sleep(11_000)
        told += [seen.admits(policy, job), seen.open_for("payments")]
        seen.give_up("payments", job)
        return told

    _breaker(stage, job["id"], act)
    breakers(stage, "payments")


def a_breaker_that_is_forced_open_and_closed(stage: Stage) -> None:
    set_setting(stage, "breakers.payments", {"force": "open"}, reason="their database moves", seconds=3_600)
    job = stage.post("/jobs", {"type": "sim.dependent", "payload": {}}, key="1")
    stage.passes(5)
    explains(stage, job["id"])
    breakers(stage)
    set_setting(stage, "breakers.payments", {"force": "closed"}, by="bob")
    explains(stage, job["id"])
    stage.wakes()
    explains(stage, job["id"])


def a_breaker_whose_item_is_asked_for_too_much(stage: Stage) -> None:
    """A failure may be reported again, and no line moves meanwhile."""
    job = stage.post("/jobs", {"type": "sim.dependent", "payload": {}, "delay_seconds": 3_000}, key="1")

    def act(seen: Breakers, policy: BreakerPolicy, job: Job) -> object:
        told: list[object] = [seen.failed(policy, job, call=call, error="1") for call in "ab"]
        stage.world.scheduler.sleep(2_000)
        stage.world.throttled_items.throttle("!breaker#payments", for_ms=20_000)
        told += [seen.look("payments"), seen.admits(policy, job), seen.failed(policy, job, call="c", error="1")]
        told += [tried(seen.holds_line, "payments")]
        stage.world.scheduler.sleep(20_000)
        told += [seen.holds_line("payments"), seen.failed(policy, job, call="d", error="2")]
        stage.world.throttled_items.throttle("!breaker#payments", for_ms=10_000)
        stage.world.scheduler.sleep(2_000)
        told += [seen.look("payments").state, seen.blocks("payments"), seen.admits(policy, job)]
        stage.world.scheduler.sleep(11_000)
        return [*told, seen.admits(policy, job), seen.succeeded(policy, job), seen.look("payments").state]

    _breaker(stage, job["id"], act)


def an_explained_job_of_a_breaker_without_a_probe_and_of_one_that_has_closed(stage: Stage) -> None:
    """The probe gives up and is cancelled. Another call succeeds, and the line has not moved on yet."""
    probe, waiting = [
        stage.post("/jobs", {"type": "sim.dependent", "payload": {}}, key=key)["id"] for key in spaced(stage, "12")
    ]
    _calls_fail(stage, waiting, "abc")
    stage.passes(4)

    def gives_up(seen: Breakers, _policy: BreakerPolicy, job: Job) -> object:
        seen.give_up("payments", job)
        return seen.look("payments").probe

    _breaker(stage, probe, gives_up)
    explains(stage, waiting, stopped=True)
    stage.post(f"/jobs/{probe}/cancel")

    def calls(seen: Breakers, policy: BreakerPolicy, job: Job) -> object:
        stage.world.scheduler.sleep(8_000)
        return [seen.admits(policy, job), seen.succeeded(policy, job)]

    _breaker(stage, waiting, calls)
    explains(stage, waiting, stopped=True)


def a_breaker_whose_results_do_not_count_while_it_is_forced(stage: Stage) -> None:
    """Whichever way it is forced. Without a force the same failures open it."""
    job = stage.post("/jobs", {"type": "sim.dependent", "payload": {}, "delay_seconds": 3_000}, key="1")

    def act(seen: Breakers, policy: BreakerPolicy, job: Job) -> object:
        told: list[object] = [seen.failed(policy, job, call=call, error="1") for call in "abc"]
        told += [seen.succeeded(policy, job), seen.would_admit(policy), seen.admits(policy, job)]
        stage.world.scheduler.sleep(1_000)
        told += [seen.blocks("payments"), seen.holds_line("payments"), seen.open_for("payments")]
        return [*told, seen.drain_rate("payments", at=clock.now())]

    for force in ("open", "closed"):
        set_setting(stage, "breakers.payments", {"force": force})
        _breaker(stage, job["id"], act)
    remove_setting(stage, "breakers.payments")
    _breaker(stage, job["id"], act)


def a_tenant_with_a_cap_and_a_weight(stage: Stage) -> None:
    set_setting(stage, "caps.default", 2, wait=0)
    set_setting(stage, f"weights.{TENANT}", 0.5)
    jobs = [
        stage.post("/jobs", {"type": "sim.effect", "payload": {"seconds": 9}}, key=key) for key in spaced(stage, "12")
    ]
    stage.passes(6)
    explains(stage, jobs[1]["id"])
    stage.passes(10)
    explains(stage, jobs[1]["id"])


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
