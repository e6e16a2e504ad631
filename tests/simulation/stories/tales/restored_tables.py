"""A table that was restored from a backup: what an operator finds in it, and does with it."""

from copy import deepcopy
from datetime import timedelta
from typing import Any, Final

from tests.simulation.deployment import JOBS_TABLE
from tests.simulation.stories.stage import TENANT, Stage
from tidemill.application.pace import Pace
from tidemill.application.recover import Recoverer, counts, missing, recovery_of
from tidemill.aws import clients
from tidemill.dynamodb.job_store import DynamoJobStore
from tidemill.dynamodb.restored_table import DynamoRecoveryLog, RestoredPages
from tidemill.system import clock

_RESTORED: Final = "restored"


def a_table_that_is_restored(stage: Stage) -> None:
    stage.post("/jobs", {"type": "sim.permanent", "payload": {}}, key="dead")
    stage.post("/jobs", {"type": "sim.effect", "payload": {"seconds": 9}}, key="running")
    stage.post("/jobs", {"type": "sim.plain", "payload": {}, "delay_seconds": 2_000}, key="scheduled")
    stage.passes(4)
    _restore(stage)
    stage.post("/jobs", {"type": "sim.plain", "payload": {}, "delay_seconds": 3_000}, key="missing")
    stage.passes(1)
    stage.operate("recovers the table", lambda: _recovered(stage))
    stage.operate("recovers the table again", lambda: _recovered(stage))


def a_job_that_was_queued_in_a_restored_table(stage: Stage) -> None:
    stage.post("/jobs", {"type": "sim.plain", "payload": {}, "group": "g"}, key="1")
    stage.passes(0.5)
    _restore(stage)
    stage.passes(9)
    stage.operate("recovers the table", lambda: _recovered(stage))


def a_restored_table_whose_former_one_is_lost(stage: Stage) -> None:
    """So each live job may have run since. First an operator only looks. One document cannot be read."""
    stage.post("/jobs", {"type": "sim.permanent", "payload": {}}, key="dead")
    stage.post("/jobs", {"type": "sim.plain", "payload": {}, "delay_seconds": 2_000}, key="scheduled")
    spoilt = stage.post("/jobs", {"type": "sim.plain", "payload": {}, "delay_seconds": 3_000}, key="spoilt")
    stage.passes(4)
    item: Any = stage.world.jobs.items[f"{TENANT}#{spoilt['id']}",]
    item["history"] = {"S": "?"}
    _restore(stage)
    stage.operate("would recover the table", lambda: _recovered_alone(stage, change=False))
    stage.operate("recovers the table", lambda: _recovered_alone(stage, change=True))


def _restore(stage: Stage) -> None:
    world = stage.world
    table = world.deployment.jobs_table()
    table.name = _RESTORED
    for key, item in world.jobs.items.items():
        table.put(key, deepcopy(dict(item)), now_ms=world.scheduler.now_ms)
    world.dynamodb.add(table)


def _recovered(stage: Stage) -> object:
    client, log = clients.dynamodb(), DynamoRecoveryLog(clients.dynamodb(), table=_RESTORED)
    seen = log.read()
    recovery = recovery_of(seen, table=_RESTORED, replaces=JOBS_TABLE, deployed_epoch=0, now=clock.now())
    if recovery != seen:
        log.write(recovery, seen=seen)
    retention = timedelta(days=1)
    restored, former = (DynamoJobStore(client, table=name, retention=retention) for name in (_RESTORED, JOBS_TABLE))
    pace = _pace(stage)
    recoverer = Recoverer(
        store=restored, former=former.get_many, recovery=recovery, clock=clock.now, pace=pace, change=True
    )
    report = [*recoverer.run(RestoredPages(client, table=_RESTORED).live)]
    pages, since = RestoredPages(client, table=JOBS_TABLE), clock.now() - timedelta(days=1)
    report += missing(lambda after: pages.accepted_since(since, after), restored.get_many, pace)
    return recovery, report, counts(report)


def _recovered_alone(stage: Stage, *, change: bool) -> object:
    client = clients.dynamodb()
    recovery = recovery_of(None, table=_RESTORED, replaces=JOBS_TABLE, deployed_epoch=0, now=clock.now())
    recoverer = Recoverer(
        store=DynamoJobStore(client, table=_RESTORED, retention=timedelta(days=1)),
        former=None,
        recovery=recovery,
        clock=clock.now,
        pace=_pace(stage),
        change=change,
    )
    report = [*recoverer.run(RestoredPages(client, table=_RESTORED).live)]
    return report, counts(report)


def _pace(stage: Stage) -> Pace:
    return Pace(1_000, clock=clock.now, pause=lambda seconds: stage.world.scheduler.sleep(int(seconds * 1000)))
