"""The operator who pauses the lanes and recovers the restored table, again until each step is complete."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final

from tests.simulation.deployment import JOBS_TABLE, RETENTION_DAYS
from tests.simulation.world.world import World
from tidemill.application.configuration import Configurator
from tidemill.application.passes.pace import Pace
from tidemill.application.restore.recover import Recoverer, missing, recovery_of
from tidemill.aws import clients
from tidemill.domain.errors import TidemillError
from tidemill.domain.operations.runtime_configuration import PAUSE_PREFIX
from tidemill.dynamodb.job_store import DynamoJobStore
from tidemill.dynamodb.operations.configuration_item import DynamoConfiguration
from tidemill.dynamodb.restore.restored_table import DynamoRecoveryLog, RestoredPages
from tidemill.system import clock

_AGAIN_MS: Final = 5_000
_RETENTION: Final = timedelta(days=RETENTION_DAYS)


class RestoringOperator:
    def __init__(self, world: World) -> None:
        self._world = world
        self.paused = False
        self.recovered = False
        self.report: dict[str, Any] = {}
        self.epoch = 0

    def pause(self) -> None:
        self._until_done("pausing operator", self._pause, lambda: self.paused)

    def recover(self, table: str) -> None:
        self._until_done("recovering operator", lambda: self._recover(table), lambda: self.recovered)

    def _until_done(self, name: str, act: Callable[[], None], done: Callable[[], bool]) -> None:
        if done():
            return
        process = self._world.process(name)

        def tried() -> None:
            try:
                act()
            except TidemillError as error:
                self._world.log(name, f"gave up: {error}")

        self._world.scheduler.spawn(process, tried)
        self._world.scheduler.after(_AGAIN_MS, self._until_done, name, act, done)

    def _pause(self) -> None:
        store = DynamoConfiguration(clients.dynamodb(), table=JOBS_TABLE)
        configurator = Configurator(store=store, clock=clock.now)
        for lane in self._world.lanes:
            name = f"{PAUSE_PREFIX}lane={lane}"
            present = configurator.read()
            if name not in present.settings:
                configurator.set(present, name, {"reject_new": True}, by="ada", reason="restore", until=None)
        self.paused = True

    def _recover(self, table: str) -> None:
        client = clients.dynamodb()
        log = DynamoRecoveryLog(client, table=table)
        seen = log.read()
        recovery = recovery_of(seen, table=table, replaces=JOBS_TABLE, deployed_epoch=0, now=clock.now())
        if recovery != seen:
            log.write(recovery, seen=seen)
        restored, former = (DynamoJobStore(client, table=name, retention=_RETENTION) for name in (table, JOBS_TABLE))
        pace = Pace(1_000, clock=clock.now, pause=lambda seconds: self._world.scheduler.sleep(int(seconds * 1000)))
        recoverer = Recoverer(
            store=restored, former=former.get_many, recovery=recovery, clock=clock.now, pace=pace, change=True
        )
        report = [*recoverer.run(RestoredPages(client, table=table).live)]
        since = clock.now() - timedelta(days=1)
        former_pages = RestoredPages(client, table=JOBS_TABLE)
        report += missing(lambda after: former_pages.accepted_since(since, after), restored.get_many, pace)
        self.report = {f"{each.tenant}#{each.job_id}": each for each in report}
        self.epoch, self.recovered = recovery.epoch, True
