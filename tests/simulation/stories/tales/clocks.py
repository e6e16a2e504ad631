"""The functions that a clock or the stream calls: wake, reconcile, tick and publish."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from tests.simulation.stories.operator_tools import each, explains, remove_setting, set_setting, spaced
from tests.simulation.stories.stage import TENANT, Mishap, Stage
from tidemill import composition
from tidemill.entrypoints import reconcile
from tidemill.names import TICK_PAYLOAD, TICK_REQUESTED, TICK_SCHEDULED_AT, TICK_TYPE
from tidemill.system import clock

_PERIODIC = "sim.periodic"
#: A job that is overdue by more is sent again.
_LIMIT_SECONDS = 10_801


def scheduled_jobs_of_several_lanes_that_wake_starts(stage: Stage) -> None:
    for key, kind, seconds in (("1", "sim.urgent", 1_300), ("2", "sim.steps", 1_000), ("3", "sim.steps", 1_101)):
        stage.post("/jobs", {"type": kind, "payload": {}, "delay_seconds": seconds}, key=key)
    stage.passes(1_000)
    stage.wakes()


def a_job_whose_message_is_lost(stage: Stage) -> None:
    job = stage.post("/jobs", {"type": "sim.effect", "payload": {}}, key="1")
    stage.passes(1.21)
    stage.world.lanes["default"].messages.clear()
    stage.passes(_LIMIT_SECONDS)
    explains(stage, job["id"], stopped=True)
    stage.reconciles()
    explains(stage, job["id"])


def a_job_whose_message_is_lost_twice(stage: Stage) -> None:
    """The next pass leaves it alone: since the nudge the job is late by less than twice the limit."""
    stage.post("/jobs", {"type": "sim.effect", "payload": {}}, key="1")
    for seconds in (1.21, 0.31):
        stage.passes(seconds)
        stage.world.lanes["default"].messages.clear()
        stage.passes(_LIMIT_SECONDS)
        stage.reconciles({})


def a_job_whose_messages_are_lost_for_a_week(stage: Stage) -> None:
    """Six nudges brought it to no worker. The next one ends it, and an operator redrives it."""
    job = stage.post("/jobs", {"type": "sim.effect", "payload": {}}, key="1")
    stage.passes(1.21)
    stage.world.lanes["default"].messages.clear()
    week_ago = stage.world.scheduler.now_ms - 8 * 86_400_000
    item: Any = stage.world.jobs.items[f"{TENANT}#{job['id']}",]
    item |= {"nudges": {"N": "6"}, "due": {"N": str(week_ago)}, "nudged_at": {"N": str(week_ago)}}
    stage.reconciles()
    explains(stage, job["id"])
    stage.post(f"/jobs/{job['id']}/redrive")
    stage.passes(4)
    stage.get(f"/jobs/{job['id']}")


def a_scheduled_job_that_only_reconcile_starts(stage: Stage) -> None:
    job = stage.post("/jobs", {"type": "sim.effect", "payload": {}, "delay_seconds": 1_000}, key="1")
    stage.passes(_LIMIT_SECONDS + 1_000)
    stage.reconciles()
    explains(stage, job["id"])


def a_parked_job_that_only_reconcile_starts(stage: Stage) -> None:
    """Its line is lost, so no wake finds it. It runs a day after it was parked."""
    stage.post("/jobs", {"type": "sim.limited", "payload": {"key": "k", "seconds": 3}}, key="1")
    parked = stage.post("/jobs", {"type": "sim.limited", "payload": {"key": "k"}}, key="2")
    stage.passes(3)
    stage.next_call("work-default", "TransactWriteItems", Mishap.KILLED_AFTER)
    stage.passes(86_400 + _LIMIT_SECONDS)
    explains(stage, parked["id"])
    stage.reconciles()
    explains(stage, parked["id"])


def an_operator_nudges_jobs_that_are_late(stage: Stage) -> None:
    """As `tidemill reconcile`. The second call finds that it was nudged just now."""
    stage.post("/jobs", {"type": "sim.effect", "payload": {}}, key="1")
    stage.post("/jobs", {"type": "sim.effect", "payload": {}, "delay_seconds": 3_000}, key="2")
    stage.passes(1.21)
    stage.world.lanes["default"].messages.clear()
    stage.passes(_LIMIT_SECONDS)

    def act() -> object:
        reconciler = reconcile.reconciler()
        late = [*reconciler.overdue()]
        first = each(late, reconciler.nudge)
        stage.world.scheduler.sleep(1_000)
        return first, each(late, reconciler.nudge), [*reconciler.overdue()]

    stage.operate("nudges late jobs", act)


def a_pass_whose_repairs_fail(stage: Stage) -> None:
    """A job cannot be written, so its part of the table is read again. The DLQ of a lane cannot be read either."""
    job = stage.post("/jobs", {"type": "sim.effect", "payload": {}}, key="1")
    stage.passes(1.21)
    stage.world.lanes["default"].messages.clear()
    stage.passes(_LIMIT_SECONDS)
    url = stage.world.dead_letters["default"].url
    dead_letters = stage.world.sqs.queues.pop(url)
    stage.world.throttled_items.throttle(f"{TENANT}#{job['id']}", for_ms=60_000)
    stage.reconciles()
    stage.world.sqs.queues[url] = dead_letters
    stage.passes(60)
    stage.reconciles()


def a_pass_over_the_table_that_another_run_has(stage: Stage) -> None:
    """One run meets it at a job of the other, and reads nothing."""
    stage.post("/jobs", {"type": "sim.effect", "payload": {}, "delay_seconds": 3_000}, key="1")

    def act() -> object:
        passes, seen = reconcile.table_passes(), list[object]()
        reconciler, left = reconcile.reconciler(), timedelta(seconds=60)

        def work(_job: object) -> bool:
            seen.append(reconciler.run(passes, time_left=lambda: left).progress)
            return True

        # The job is not due yet, so a pass by the ordinary limit would not find it.
        done = passes.run(work, late_by=-timedelta(hours=1), time_left=lambda: left)
        return seen, done, passes.find()

    stage.operate("runs twice at once", act)


def a_pass_over_the_table_whose_run_is_killed(stage: Stage) -> None:
    stage.next_call("reconcile", "Scan", Mishap.KILLED_BEFORE)
    stage.reconciles()


def a_pass_over_the_table_that_an_alarm_asks_for(stage: Stage) -> None:
    """It meets an orphaned payload, a group, and a document that it cannot read."""
    job = stage.post("/jobs", {"type": "sim.plain", "payload": {}, "group": "g", "delay_seconds": 80_000}, key="1")
    other = stage.post("/jobs", {"type": "sim.effect", "payload": {}, "delay_seconds": 1_000}, key="2")
    stage.operate("stores a payload that no document names", lambda: _orphan(job["id"]))
    _spoil(stage, other["id"])
    stage.passes(86_401)
    stage.reconciles()
    stage.reconciles({})


def messages_of_which_one_has_no_queue(stage: Stage) -> None:
    url = stage.world.lanes["default"].url
    queue = stage.world.sqs.queues.pop(url)
    job = stage.post("/jobs", {"type": "sim.effect", "payload": {"seconds": 1}}, key="1")
    stage.passes(3)
    explains(stage, job["id"])
    stage.world.sqs.queues[url] = queue
    stage.passes(58)
    stage.wakes()
    stage.passes(1)
    explains(stage, job["id"])
    stage.passes(60)
    stage.wakes()


def work_that_is_owed_for_too_long(stage: Stage) -> None:
    job = stage.post("/jobs", {"type": "sim.effect", "payload": {}}, key="1")
    _spoil(stage, job["id"])
    stage.passes(10)
    stage.wakes()
    stage.passes(300)
    stage.wakes()


def messages_of_several_lanes_and_times(stage: Stage) -> None:
    jobs = [
        {"type": "sim.urgent", "payload": {}, "idempotency_key": "1", "delay_seconds": 40},
        {"type": "sim.steps", "payload": {}, "idempotency_key": "2", "delay_seconds": 899},
        {"type": "sim.effect", "payload": {}, "idempotency_key": "3", "delay_seconds": 900},
        {"type": "sim.effect", "payload": {}, "idempotency_key": "4", "delay_seconds": 901},
    ]
    stage.post("/jobs/batch", {"jobs": jobs})
    stage.passes(5)


def a_periodic_job_and_its_schedule(stage: Stage) -> None:
    event = {TICK_TYPE: _PERIODIC, TICK_SCHEDULED_AT: _at(stage, 0)}
    stage.ticks(event)
    stage.passes(1)
    stage.ticks(event)
    stage.ticks({**event, TICK_SCHEDULED_AT: _at(stage, 60)})
    stage.ticks({**event, TICK_REQUESTED: "true"})
    checked = {**event, TICK_PAYLOAD: {"fails": "x", "colour": 1}}
    stage.operate("has a payload checked", lambda: stage.world.functions["tick"].invoke(checked))


def a_periodic_job_whose_schedule_is_paused(stage: Stage) -> None:
    set_setting(stage, f"pauses.schedule={_PERIODIC}", {}, reason="no need", wait=12)
    event = {TICK_TYPE: _PERIODIC, TICK_SCHEDULED_AT: _at(stage, 0)}
    stage.ticks(event)
    remove_setting(stage, f"pauses.schedule={_PERIODIC}")
    stage.ticks({**event, TICK_SCHEDULED_AT: _at(stage, 5)})
    stage.ticks({**event, TICK_SCHEDULED_AT: _at(stage, 4)})


def a_periodic_job_while_the_configuration_cannot_be_read(stage: Stage) -> None:
    event = {TICK_TYPE: _PERIODIC, TICK_SCHEDULED_AT: _at(stage, 0)}
    stage.world.throttled_items.throttle("!config", for_ms=170_000)
    stage.ticks(event)


def steps_of_publish_that_fail(stage: Stage) -> None:
    """A group is not advanced, and a paused job is not parked."""
    set_setting(stage, "pauses.type=sim.effect", {})
    stage.post("/jobs", {"type": "sim.plain", "payload": {}, "group": "g"}, key="1")
    job = stage.post("/jobs", {"type": "sim.effect", "payload": {}}, key="2")
    stage.world.throttled_items.throttle(f"{TENANT}#{job['id']}", for_ms=20_000)
    stage.world.throttled_items.throttle(f'!head#["{TENANT}","g"]', for_ms=20_000)
    stage.passes(60)
    stage.wakes()


def a_step_of_publish_for_a_flow_that_fails(stage: Stage) -> None:
    """The flow is asked to look at its node as owed work."""
    flow = stage.post("/flows", {"nodes": [{"name": "a", "type": "sim.plain", "payload": {"seconds": 3}}]}, key="1")
    stage.passes(4)
    stage.world.throttled_items.throttle(f"{TENANT}#{flow['id']}", for_ms=20_000)
    stage.passes(60)
    stage.wakes()
    stage.passes(60)
    stage.wakes()
    stage.passes(4)
    stage.get(f"/flows/{flow['id']}")


def a_job_that_wake_cannot_write_at_first(stage: Stage) -> None:
    """The other one is woken, and the next call finds this one."""
    for key, seconds in (("1", 1_100), ("2", 1_101)):
        job = stage.post("/jobs", {"type": "sim.steps", "payload": {}, "delay_seconds": seconds}, key=key)
    stage.passes(1_000)
    stage.world.throttled_items.throttle(f"{TENANT}#{job['id']}", for_ms=30_000)
    stage.wakes()
    stage.passes(30)
    stage.wakes()


def dead_letters_that_reconcile_sweeps(stage: Stage) -> None:
    for key in spaced(stage, "12"):
        stage.post("/jobs", {"type": "sim.permanent", "payload": {}}, key=key)
    stage.passes(5)
    stage.operate("purges one", lambda: composition.parts().store.forget(next(iter(composition.parts().store.dead()))))
    stage.reconciles()


def _orphan(job_id: str) -> object:
    job = composition.parts().store.get(TENANT, job_id)
    assert job
    payload = '"' + "x" * 400 + '"'
    return (
        composition.parts()
        .payloads.put_away(replace(job, payload=payload, payload_at=None), now=clock.now())
        .payload_at
    )


def _at(stage: Stage, seconds: int) -> str:
    at = datetime.fromtimestamp(stage.world.scheduler.now_ms / 1000 + seconds, tz=UTC)
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def _spoil(stage: Stage, job_id: str) -> None:
    """Make the document unreadable."""
    item: Any = stage.world.jobs.items[f"{TENANT}#{job_id}",]
    item["history"] = {"S": "?"}
