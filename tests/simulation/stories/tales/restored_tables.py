"""A table that was restored from a backup: what an operator finds in it, and does with it."""

from copy import deepcopy
from datetime import timedelta
from typing import Final

from tests.simulation.deployment import JOBS_TABLE
from tests.simulation.stories.stage import Stage
from tidemill.application.passes.pace import Pace
from tidemill.application.restore.recover import Recoverer, counts, missing, recovery_of
from tidemill.aws import clients
from tidemill.dynamodb.job_store import DynamoJobStore
from tidemill.dynamodb.restore.restored_table import DynamoRecoveryLog, RestoredPages
from tidemill.system import clock

_RESTORED: Final = "restored"


def a_job_that_was_queued_in_a_restored_table(stage: Stage) -> None:
    stage.post("/jobs", {"type": "sim.plain", "payload": {}, "group": "g"}, key="1")
    stage.passes(0.5)
    _restore(stage)
    stage.passes(9)
    stage.operate("recovers the table", lambda: _recovered(stage))


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


def _pace(stage: Stage) -> Pace:
    return Pace(1_000, clock=clock.now, pause=lambda seconds: stage.world.scheduler.sleep(int(seconds * 1000)))
