"""Quotas, strain and first messages: what becomes of a submission when there is too much to do, and when not."""

from tests.simulation.deployment import JOBS_TABLE
from tests.simulation.stories.operator_tools import set_setting, spaced
from tests.simulation.stories.stage import TENANT, Stage
from tidemill.application.admission.foreground import Governor
from tidemill.application.configuration import nothing_set
from tidemill.aws import clients
from tidemill.domain.admission.governor import Starts
from tidemill.dynamodb.admission.strain_item import DynamoGovernor
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
