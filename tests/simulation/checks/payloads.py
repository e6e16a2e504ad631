"""Payloads that are stored beside their documents: none goes before its job, and none stays behind for ever."""

import json
from collections.abc import Iterator
from typing import Final

from tests.simulation.checks.violation import require, require_in_task, text_of
from tests.simulation.world.dynamodb_table import Record
from tests.simulation.world.faults import LOSSES, Fault
from tests.simulation.world.world import World
from tidemill.application.attempt_report import Ending
from tidemill.names import PAYLOADS_PREFIX

#: As `tidemill.dynamodb.payloads` names an item, and a file.
_ITEM: Final = "!payload#"
_FILE: Final = "file/"


class PayloadChecks:
    """Watches the jobs table and the bucket of one world."""

    def __init__(self, world: World) -> None:
        self._world = world
        #: Places that a document has ever named.
        self._named: set[str] = set()
        world.jobs.watchers.append(self._changed)
        world.s3.watchers.append(lambda path: self._deleted(_FILE + path.rpartition("/")[2]))

    def at_rest(self) -> bool:
        """Whether all are gone that ever go: the bucket forgets a file that no document names, years later."""
        return all(place.startswith(_FILE) and place not in self._named for place in self._stored())

    def at_end(self) -> None:
        """When all jobs have expired, and reconcile has come by."""
        counted = self._world.faults.counted
        lost = any(counted[fault] for fault in LOSSES)
        for place in self._stored():
            self._world.faults.count(Fault.PAYLOAD_ORPHANED)
            if place not in self._named:
                # Between storing it and writing its document somebody died, was not answered, or lost their lease.
                fenced = any(report.ending is Ending.FENCED for _, _, report in self._world.reports)
                excused = bool(self._world.scheduler.interrupted or self._world.sdk.gave_up or fenced)
            else:
                # Nobody was told that its job is gone, or the bucket did not answer for too long.
                excused = lost or place in self._world.undeleted_payloads
            stays = place.startswith(_FILE) and excused
            require(stays, "no payload is left behind", f"{place} is still there", "*")

    def _changed(self, record: Record) -> None:
        key, after = record.keys["pk"]["S"], record.after
        if after is not None and "payload_at" in after:
            self._named.add(text_of(after, "payload_at"))
        if after is None and key.startswith(_ITEM):
            self._deleted(json.loads(key.removeprefix(_ITEM))[2])

    def _deleted(self, place: str) -> None:
        for (key,), item in self._world.jobs.items.items():
            needed = text_of(item, "payload_at") == place
            require_in_task(
                self._world.scheduler, not needed, "payloads outlive their jobs", f"{place} was deleted", key
            )

    def _stored(self) -> Iterator[str]:
        for (key,) in self._world.jobs.items:
            if key.startswith(_ITEM):
                yield json.loads(key.removeprefix(_ITEM))[2]
        for _, path in self._world.s3.objects:
            if path.startswith(PAYLOADS_PREFIX):
                yield _FILE + path.rpartition("/")[2]
