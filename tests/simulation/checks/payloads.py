"""Checks of payloads stored beside their documents: each lives as long as its job, and none stays for ever."""

import json
from collections.abc import Iterator
from typing import Final

from tests.simulation.checks.violation import require, require_in_task, text_of
from tests.simulation.world.dynamodb_table import Record
from tests.simulation.world.faults import LOSSES, Fault
from tests.simulation.world.world import World
from tidemill.application.attempt_report import Ending
from tidemill.names import FLOW_TYPE, PAYLOADS_PREFIX

#: Prefixes of an item and a file, as `tidemill.dynamodb.payloads` writes them.
_ITEM: Final = "!payload#"
_FILE: Final = "file/"


class PayloadChecks:
    """Watches the jobs table and the bucket of one world."""

    def __init__(self, world: World) -> None:
        self._world = world
        #: Payload places that a document has ever named.
        #: By place, the key of the job that named it.
        self._named: dict[str, str] = {}
        world.jobs.watchers.append(self._changed)
        world.s3.watchers.append(lambda path: self._deleted(_FILE + path.rpartition("/")[2]))

    def at_rest(self) -> bool:
        """Whether only files remain that no document names: a lifecycle rule of the bucket deletes those."""
        return all(
            self._of_a_flow(place) or (place.startswith(_FILE) and place not in self._named) for place in self._stored()
        )

    def at_end(self) -> None:
        """Call it when all jobs have expired and reconcile has run."""
        counted = self._world.faults.counted
        lost = any(counted[fault] for fault in LOSSES)
        for place in self._stored():
            if self._of_a_flow(place) or self._is_in_use(place):
                continue
            self._world.faults.count(Fault.PAYLOAD_ORPHANED)
            if place not in self._named:
                # Its writer died, got no response or lost its lease between storing it and writing the document.
                fenced = any(report.ending is Ending.FENCED for _, _, report in self._world.reports)
                excused = bool(self._world.scheduler.interrupted or self._world.sdk.gave_up or fenced)
            else:
                # The record of the deleted job was lost or unreadable.
                tenant, _, job_id = self._named[place].rpartition("#")
                excused = lost or (tenant, job_id) in self._world.unread_changes
            stays = place.startswith(_FILE) and excused
            require(stays, "no payload is orphaned", f"{place} still exists", "*")

    def _is_in_use(self, place: str) -> bool:
        """By a job that came so late that it has not expired: its caller sent it again for days."""
        item = self._world.jobs.items.get((self._named.get(place, ""),))
        return item is not None and text_of(item, "payload_at") == place

    def _of_a_flow(self, place: str) -> bool:
        """Whether its document is still there: flows and their nodes are kept for longer than a seed lasts."""
        item = self._world.jobs.items.get((self._named.get(place, ""),), {})
        return text_of(item, "payload_at") == place and ("flow" in item or text_of(item, "type") == FLOW_TYPE)

    def _changed(self, record: Record) -> None:
        key, after = record.keys["pk"]["S"], record.after
        if after is not None and "payload_at" in after:
            self._named[text_of(after, "payload_at")] = key
        if after is None and key.startswith(_ITEM):
            self._deleted(json.loads(key.removeprefix(_ITEM))[2])

    def _deleted(self, place: str) -> None:
        for (key,), item in self._world.jobs.items.items():
            needed = text_of(item, "payload_at") == place
            require_in_task(
                self._world.scheduler,
                not needed,
                "payloads outlive their jobs",
                f"its payload {place} was deleted",
                key,
            )

    def _stored(self) -> Iterator[str]:
        for (key,) in self._world.jobs.items:
            if key.startswith(_ITEM):
                yield json.loads(key.removeprefix(_ITEM))[2]
        for _, path in self._world.s3.objects:
            if path.startswith(PAYLOADS_PREFIX):
                yield _FILE + path.rpartition("/")[2]
