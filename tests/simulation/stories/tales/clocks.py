"""The functions that a clock or the stream calls: wake, reconcile, tick and publish."""

from datetime import UTC, datetime

from tests.simulation.stories.operator_tools import explains
from tests.simulation.stories.stage import Stage
from tidemill.names import TICK_PAYLOAD, TICK_REQUESTED, TICK_SCHEDULED_AT, TICK_TYPE

_PERIODIC = "sim.periodic"
#: A job that is overdue by more is sent again.
_LIMIT_SECONDS = 10_801


def a_job_whose_message_is_lost(stage: Stage) -> None:
    job = stage.post("/jobs", {"type": "sim.effect", "payload": {}}, key="1")
    stage.passes(1.21)
    stage.world.lanes["default"].messages.clear()
    stage.passes(_LIMIT_SECONDS)
    explains(stage, job["id"], stopped=True)
    stage.reconciles()
    explains(stage, job["id"])


def a_periodic_job_and_its_schedule(stage: Stage) -> None:
    event = {TICK_TYPE: _PERIODIC, TICK_SCHEDULED_AT: _at(stage, 0)}
    stage.ticks(event)
    stage.passes(1)
    stage.ticks(event)
    stage.ticks({**event, TICK_SCHEDULED_AT: _at(stage, 60)})
    stage.ticks({**event, TICK_REQUESTED: "true"})
    checked = {**event, TICK_PAYLOAD: {"fails": "x", "colour": 1}}
    stage.operate("has a payload checked", lambda: stage.world.functions["tick"].invoke(checked))


def _at(stage: Stage, seconds: int) -> str:
    at = datetime.fromtimestamp(stage.world.scheduler.now_ms / 1000 + seconds, tz=UTC)
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")
