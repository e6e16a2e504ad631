"""Quotas, strain and first messages: what becomes of a submission when there is too much to do, and when not."""

from datetime import timedelta

from tests.simulation.deployment import JOBS_TABLE
from tests.simulation.stories.operator_tools import remove_setting, set_setting, spaced
from tests.simulation.stories.stage import BOB, TENANT, Stage
from tidemill.application.configuration import nothing_set
from tidemill.application.foreground import Foreground, Governor
from tidemill.aws import clients
from tidemill.domain.governor import GOVERNOR_SETTING, Starts
from tidemill.domain.strain import LEVEL_SETTING
from tidemill.dynamodb.strain_item import DynamoGovernor
from tidemill.names import Env
from tidemill.system import clock

#: Starts that were late, all of them, and the milliseconds until the next report.
_STARTS = ((4, 50, 2_000), (1, 0, 2_000), (1, 1, 6_000), (5, 5, 9_000), (1, 20, 11_000), (9, 9, 1_000), (1, 90, 1_000))


def a_tenant_over_its_quota(stage: Stage) -> None:
    set_setting(stage, f"quotas.{TENANT}", {"count": 2, "period_seconds": 60})
    for key in spaced(stage, "123"):
        stage.post("/jobs", {"type": "sim.plain", "payload": {}, "delay_seconds": 3_000}, key=key)
    stage.post("/jobs", {"type": "sim.plain", "payload": {}, "delay_seconds": 3_000}, key="1")
    stage.passes(60)
    stage.post("/jobs", {"type": "sim.plain", "payload": {}, "delay_seconds": 3_000}, key="4")


def a_batch_of_a_tenant_over_the_default_quota(stage: Stage) -> None:
    set_setting(stage, "quotas.default", {"count": 1, "period_seconds": 3_600})
    job = {"type": "sim.plain", "payload": {}, "delay_seconds": 3_000}
    stage.post("/jobs/batch", {"jobs": [{**job, "idempotency_key": key} for key in "12"]}, tenant=BOB)


def submissions_under_strain(stage: Stage) -> None:
    for level, seconds in ((1, None), (3, 100)):
        set_setting(stage, LEVEL_SETTING, level, seconds=seconds)
        for kind in ("sim.sheddable", "sim.deferrable", "sim.steps"):
            body: dict[str, object] = {"type": kind, "payload": {}}
            if kind != "sim.deferrable":
                body["delay_seconds"] = 50
            stage.post("/jobs", body, key=f"{kind}-{level}")


def an_urgent_job_that_starts_late(stage: Stage) -> None:
    for name in ("submit", "work-critical", "wake"):
        function = stage.world.functions[name]
        function.environment = {**function.environment, Env.FOREGROUND_TARGET: "2"}
    stage.post("/jobs", {"type": "sim.urgent", "payload": {}}, key="1")
    stage.passes(10)
    stage.wakes()


def the_levels_of_the_governor(stage: Stage) -> None:
    def act() -> object:
        moves, told, sleep = list[object](), list[object](), stage.world.scheduler.sleep
        governor = Governor(
            DynamoGovernor(clients.dynamodb(), table=JOBS_TABLE),
            clock=clock.now,
            configuration=nothing_set,
            changed=lambda before, after: moves.append([before.level, after.level]),
        )
        for late, total, then_ms in _STARTS:
            governor.report(Starts(late=late, total=total))
            told.append([late, total, governor.level()])
            sleep(then_ms)
        for seconds in (30, 25, 10, 60, 400):
            told.append([governor.settle(), governor.level()])
            sleep(seconds * 1_000)
        return told, moves, governor.level()

    stage.operate("watches the governor", act)


def a_process_whose_reports_of_late_starts_are_refused(stage: Stage) -> None:
    """It counts on, and waits longer for each further report."""

    def act() -> object:
        told, sleep = "", stage.world.scheduler.sleep
        store = DynamoGovernor(clients.dynamodb(), table=JOBS_TABLE)
        governor = Governor(store, clock=clock.now, configuration=nothing_set, changed=lambda _before, _after: None)
        foreground = Foreground(governor, target=timedelta(seconds=2), clock=clock.now)
        stage.world.throttled_items.throttle("!strain", for_ms=25_000)
        for _ in range(40):
            foreground.waited(timedelta(seconds=3))
            foreground.waited(timedelta(seconds=2))
            told += str(governor.level())
            sleep(1_000)
        return told

    stage.operate("runs urgent jobs", act)


def a_governor_that_is_switched_off(stage: Stage) -> None:
    for name in ("submit", "work-critical", "wake"):
        function = stage.world.functions[name]
        function.environment = {**function.environment, Env.FOREGROUND_TARGET: "2"}
    set_setting(stage, GOVERNOR_SETTING, {"off": True})
    stage.post("/jobs", {"type": "sim.sheddable", "payload": {}, "delay_seconds": 3_000}, key="1")
    remove_setting(stage, GOVERNOR_SETTING)
    stage.post("/jobs", {"type": "sim.sheddable", "payload": {}, "delay_seconds": 3_000}, key="2")


def a_job_with_first_messages(stage: Stage) -> None:
    for name in ("submit", "publish", "work-default"):
        function = stage.world.functions[name]
        function.environment = {**function.environment, Env.FIRST_MESSAGE_LANES: "default"}
    stage.post("/jobs", {"type": "sim.continue", "payload": {"count": 1}}, key="1")
    stage.passes(10)
