"""The restored table of `tidemill recover`, and the table in use that it replaces."""

import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final

from tidemill.application.configuration import Configurator
from tidemill.application.operations.audit import Auditor
from tidemill.application.passes.pace import Pace
from tidemill.application.restore.recover import Recovered, Recoverer, Recovery, missing
from tidemill.aws import clients
from tidemill.cli.errors import CommandError
from tidemill.cli.installation import Installation
from tidemill.domain.operations.runtime_configuration import PAUSE_PREFIX
from tidemill.domain.waiting.pauses import Scope, Target
from tidemill.dynamodb.job_store import DynamoJobStore
from tidemill.dynamodb.operations.audit_items import DynamoAuditLog
from tidemill.dynamodb.operations.configuration_item import DynamoConfiguration
from tidemill.dynamodb.restore.restored_table import DynamoRecoveryLog, RestoredPages
from tidemill.names import ATTENTION_INDEX, LISTING_INDEX
from tidemill.operator.restore import restored_table as tables
from tidemill.operator.restore.restored_table import TableFacts
from tidemill.system import clock, ids

#: The SDK's pool has more connections.
_THREADS: Final = 8
#: Clocks differ: a job may have been accepted a little before its time.
_SKEW: Final = timedelta(minutes=1)
_EVER: Final = datetime.fromtimestamp(0, UTC)


class RestoredTable:
    """`facts` are as of now, and after `complete` as it left them."""

    def __init__(self, installation: Installation, name: str, *, read_units: int) -> None:
        """Raises `CommandError` for a table that cannot be recovered."""
        found = installation.deployment
        if name == found.jobs_table:
            raise CommandError(
                f"{name} is the table in use, and its functions act on it",
                remedy="Recover a restored table before you deploy with it. For the one in use: `tidemill reconcile`.",
            )
        self._client: Any = clients.dynamodb()
        self._read_units = read_units
        former = tables.read(found.jobs_table)
        facts = tables.read(name)
        if facts is None:
            raise CommandError(f"found no table {name!r} in {found.region}", remedy="Check its name and the region.")
        indexes = {ATTENTION_INDEX, *({LISTING_INDEX} & former.indexes if former else ())}
        if faults := facts.faults(indexes):
            raise CommandError(
                f"{name} cannot be recovered: {', '.join(faults)}",
                remedy="Wait until the restore is complete, or restore the table again with all of its indexes.",
            )
        self.facts: TableFacts = facts
        self._protected = former.protected if former else False
        self.former = DynamoJobStore(self._client, table=former.name, retention=found.retention) if former else None
        self._former_pages = RestoredPages(self._client, table=former.name) if former else None
        self._pages = RestoredPages(self._client, table=name)
        self._store = DynamoJobStore(self._client, table=name, retention=found.retention)
        self.log = DynamoRecoveryLog(self._client, table=name)
        audit_log = DynamoAuditLog(self._client, table=name, retention=found.audit_retention)
        self.auditor = Auditor(audit_log, clock=clock.now, new_token=ids.new_token)

    @property
    def to_turn_on(self) -> list[str]:
        return self.facts.missing(protected=self._protected)

    def complete(self) -> None:
        self.facts = self.facts.complete(self._client, protected=self._protected)

    def pause(self, lanes: Iterable[str], *, by: str, reason: str) -> None:
        """Before its first job is sent, so that no job starts. Safe to repeat."""
        store = DynamoConfiguration(self._client, table=self.facts.name)
        configurator = Configurator(store=store, clock=clock.now)
        for lane in lanes:
            name = f"{PAUSE_PREFIX}{Target(scope=Scope.LANE, name=lane)}"
            configurator.set(configurator.read(), name, {}, by=by, reason=reason, until=None)

    def recovered(self, recovery: Recovery, *, change: bool) -> Iterator[Recovered]:
        with ThreadPoolExecutor(_THREADS) as pool:

            def in_parallel(call: Callable[[Any], Any], items: Iterable[Any]) -> Iterable[Any]:
                return pool.map(call, items)

            recoverer = Recoverer(
                store=self._store,
                former=self.former.get_many if self.former else None,
                recovery=recovery,
                clock=clock.now,
                pace=self._pace(),
                in_parallel=in_parallel,
                change=change,
            )
            yield from recoverer.run(self._pages.live)

    def missing(self) -> Iterator[Recovered]:
        """The jobs that only the table in use has. Empty if it cannot be read."""
        if self._former_pages is None:
            return iter(())
        since = self.facts.restored_to - _SKEW if self.facts.restored_to else _EVER
        return missing(partial(self._former_pages.accepted_since, since), self._store.get_many, self._pace())

    def _pace(self) -> Pace:
        return Pace(self._read_units, clock=clock.steady, pause=time.sleep)
