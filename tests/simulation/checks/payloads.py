"""Checks of payloads stored beside their documents: each lives as long as its job, and none stays for ever."""

import json
from base64 import urlsafe_b64decode
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tests.simulation.checks.newer_documents import is_newer
from tests.simulation.checks.violation import require, require_in_task, text_of
from tests.simulation.world.dynamodb_table import Record
from tests.simulation.world.faults import LOSSES, Fault
from tests.simulation.world.lambda_environments import LONGEST_INVOCATION_MS
from tests.simulation.world.world import World
from tidemill.application.attempt.attempt_report import Ending
from tidemill.names import FLOW_TYPE, PAYLOADS_PREFIX

#: Prefixes of an item and a file, as `tidemill.dynamodb.payloads` writes them.
_ITEM: Final = "!payload#"
_FILE: Final = "file/"


@dataclass(frozen=True, slots=True)
class _Writer:
    """The process that wrote a file, for which job, when, and its calls without response by then."""

    process: str
    job_key: str
    at_ms: int
    unanswered: int


class PayloadChecks:
    """Watches the jobs table and the bucket of one world."""

    def __init__(self, world: World) -> None:
        self._world = world
        #: By place that a document has ever named, the key of the job that named it.
        self._named: dict[str, str] = {}
        #: By place of a file.
        self._writers: dict[str, _Writer] = {}
        #: Keys of jobs whose document the next version of the code has written.
        self._newer: set[str] = set()
        world.jobs.watchers.append(self._changed)
        world.s3.watchers.append(lambda path: self._deleted(_place_of(path)))
        world.s3.put_watchers.append(self._written)

    def at_rest(self) -> bool:
        """Whether only files remain that no document names: a lifecycle rule of the bucket deletes those.

        The first submission of a world may still be under way, and name its file then.
        """
        latest_ms = self._world.scheduler.now_ms - LONGEST_INVOCATION_MS
        return all(
            self._of_a_flow(place)
            or (place.startswith(_FILE) and place not in self._named and self._writers[place].at_ms <= latest_ms)
            for place in self._stored()
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
                excused = self._is_left_by_its_writer(place)
            else:
                # The record of the deleted job was lost or unreadable.
                tenant, _, job_id = self._named[place].rpartition("#")
                excused = lost or (tenant, job_id) in self._world.unread_changes
            stays = place.startswith(_FILE) and excused
            require(stays, "no payload is orphaned", f"{place} still exists", "*")

    def _is_left_by_its_writer(self, place: str) -> bool:
        """Whether the process that wrote a file that no document named may have left it.

        It died, got no response or lost its lease between storing it and writing the document. A deletion that got none
        is owed, so it excuses nothing.
        """
        writer = self._writers.get(place)
        if writer is None:
            return False
        fenced = any(
            by == writer.process and at_ms >= writer.at_ms and report.ending is Ending.FENCED
            for at_ms, by, report in self._world.reports
        )
        unanswered = self._unanswered(writer.process) > writer.unanswered
        # A document that it cannot read has refused the write. It may name the file, after a try that got no response.
        unread = writer.job_key in self._newer
        return unanswered or fenced or unread or writer.process in self._world.scheduler.interrupted

    def _unanswered(self, process: str) -> int:
        """The calls of the process that got no response, except deletions of files."""
        sdk = self._world.sdk
        return sdk.gave_up[process] - sdk.gave_up_on[process, "DeleteObject"]

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
        if after is not None and is_newer(after):
            self._newer.add(key)
        if after is not None and "payload_at" in after:
            self._named[text_of(after, "payload_at")] = key
        if after is None and key.startswith(_ITEM):
            self._deleted(json.loads(key.removeprefix(_ITEM))[2])

    def _written(self, path: str) -> None:
        if path.startswith(PAYLOADS_PREFIX) and (task := self._world.scheduler.current):
            process, now_ms = task.process.name, self._world.scheduler.now_ms
            _, tenant, job_id, _ = path.split("/")
            job_key = f"{urlsafe_b64decode(tenant + '===').decode()}#{job_id}"
            self._writers[_place_of(path)] = _Writer(process, job_key, now_ms, self._unanswered(process))

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
                yield _place_of(path)


def _place_of(path: str) -> str:
    """Return the place of a file."""
    return _FILE + path.rpartition("/")[2]
