"""Checks of each message that publish sends, and of each DLQ message that a sweep deletes, against the document."""

import json
from datetime import datetime
from functools import partial
from typing import Final

from tests.simulation.checks.messages import reference_in
from tests.simulation.checks.violation import (
    Item,
    has_expired,
    map_of,
    number_of,
    require_in_task,
    state_of,
    text_of,
)
from tests.simulation.checks.waits import LONGEST_DELAY_MS
from tests.simulation.world.dynamodb_table import Record
from tests.simulation.world.faults import Fault
from tests.simulation.world.lambda_environments import FAR_OFF_MS, LARGEST_SKEW_MS
from tests.simulation.world.sqs_queue import Message, Queue
from tests.simulation.world.world import World
from tidemill.domain.dispatch.job_message import Reference
from tidemill.domain.states import State

_DISPATCHED: Final = frozenset({State.QUEUED, State.RETRYING})
#: A visibility timeout counts from when SQS gets the call, and lasts 12 hours at most.
_CALL_TAKES_MS: Final = 180_000
_LONGEST_HIDDEN_MS: Final = 11 * 3_600_000
#: Longest time between reading a document and deleting its DLQ message: an invocation of reconcile, delayed.
_JUDGED_WITHIN_MS: Final = 20 * 60_000


class DispatchChecks:
    """Watches the queues and the jobs table of one world."""

    def __init__(self, world: World) -> None:
        self._world = world
        #: By key of the job, when it entered its present state, generation and due time.
        self._since: dict[str, tuple[tuple[str, int, int], int]] = {}
        world.jobs.watchers.append(self._changed)
        for queue in world.lanes.values():
            queue.send_watchers.append(partial(self._sent, queue))
            queue.hide_watchers.append(self._put_back)
            queue.refusal_watchers.append(self._hidden_for_too_long)
        for queue in world.dead_letters.values():
            queue.send_watchers.append(partial(self._dead_letter_sent, queue))
            queue.delete_watchers.append(self._dead_letter_deleted)

    def _changed(self, record: Record) -> None:
        if record.after and "state" in record.after:
            after, key = record.after, record.keys["pk"]["S"]
            # A submission that moves its burst sends no message: that of the dispatch may still be on its way.
            due_ms = 0 if "burst" in after else number_of(after, "due")
            now = (text_of(after, "state"), number_of(after, "generation"), due_ms)
            if self._since.get(key, (None, 0))[0] != now:
                self._since[key] = now, self._now_ms

    def _sent(self, queue: Queue, message: Message) -> None:
        """A message becomes visible when its job is due: an early one uses up a receive, a late one delays the job."""
        found = self._present(message)
        if not self._by_publish or found is None or state_of(found[1]) not in _DISPATCHED:
            return
        key, item = found
        self._require(text_of(item, "lane") == queue.name, "a message goes to the lane of its job", queue.name, key)
        delay_ms, due_ms = message.visible_ms - self._now_ms, number_of(item, "due")
        # A submission may have moved it since its last dispatch, whose message serves.
        wanted_ms = min(due_ms, number_of(map_of(item, "burst"), "sent_for")) if "burst" in item else due_ms
        early_ms = wanted_ms - message.visible_ms if delay_ms < LONGEST_DELAY_MS else 0
        late_ms = message.visible_ms - max(due_ms, self._now_ms)
        # Publish computed the delay at some time after the document was written.
        slack_ms = self._now_ms - self._since[key][1] + self._skew_ms + 1000
        check, what = "a message is delayed until its job is due", f"{delay_ms} ms, due in {due_ms - self._now_ms} ms"
        self._require(early_ms <= self._skew_ms, check, what, key)
        self._require(late_ms <= slack_ms, check, what, key)

    def _put_back(self, message: Message) -> None:
        """A worker hides a message until the time that its report names, or makes it visible if that has passed."""
        task = self._world.scheduler.current
        if task is None or not task.process.name.startswith("work-"):
            return
        by, now_ms, key = task.process, self._now_ms, reference_in(message)[0]
        untils = self._named_times(by.name, message)
        named_ms = [until.timestamp() * 1000 - by.skew_ms for until in untils]
        late_ms = [message.visible_ms - max(until_ms, now_ms) for until_ms in named_ms]
        capped = any(until_ms - now_ms >= _LONGEST_HIDDEN_MS for until_ms in named_ms)
        fits = capped or any(-1000 <= late <= _CALL_TAKES_MS for late in late_ms)
        what = f"hidden for {message.visible_ms - now_ms} ms, not {[round(ms - now_ms) for ms in named_ms[-10:]]}"
        self._require(fits, "a message is put back until the time in its report", what, key)

    def _hidden_for_too_long(self, message: Message) -> None:
        """Twelve hours is the longest time, so a worker asks for it only if its report names a later one."""
        task = self._world.scheduler.current
        if task and task.process.name.startswith("work-"):
            latest_ms = self._now_ms + _LONGEST_HIDDEN_MS
            by, skew_ms = task.process.name, task.process.skew_ms
            far = any(until.timestamp() * 1000 - skew_ms >= latest_ms for until in self._named_times(by, message))
            key = reference_in(message)[0]
            self._require(far, "a message is put back until the time in its report", "SQS refused the time", key)

    def _named_times(self, by: str, message: Message) -> list[datetime]:
        """Until when the reports of this process put the message back."""
        key, generation = reference_in(message)
        reports = zip(self._world.reports, self._world.reports_by_message, strict=True)
        return [
            report.put_back_until
            for (_, name, _), (reference, report) in reports
            # Without a reference, the message is not readable.
            if name == by and report.put_back_until and (reference is None or _is_of(reference, key, generation))
        ]

    def _dead_letter_sent(self, queue: Queue, message: Message) -> None:
        found = self._present(message)
        if not self._by_publish or found is None or state_of(found[1]) is not State.DEAD:
            return
        key, item = found
        fields = json.loads(message.body)["letter"]
        # The errors of a job that died undeliverable are older than its death, and not the cause of it.
        lost = text_of(item, "death") == "undeliverable"
        errors = [] if lost else item.get("errors", {"L": []})["L"]
        wanted = {
            "type": text_of(item, "type"),
            "death": text_of(item, "death"),
            "error_class": text_of(errors[-1]["M"], "error_class") if errors else "",
            "attempts": number_of(item, "attempt"),
        }
        self._require(fields == wanted, "a DLQ message says why its job died", f"{fields}, not {wanted}", key)
        self._require(
            queue.name.startswith(text_of(item, "lane")), "a message goes to the lane of its job", queue.name, key
        )

    def _dead_letter_deleted(self, message: Message) -> None:
        """A sweep deletes a message whose job has moved on since, and keeps that of a job which is still dead."""
        found = self._present(message)
        if found is None:
            return
        key, item = found
        stays = state_of(item) is State.DEAD and not has_expired(item, self._now_ms, late_ms=self._skew_ms + 1000)
        long_dead = self._now_ms - self._since[key][1] > _JUDGED_WITHIN_MS
        what = f"generation {number_of(item, 'generation')} is still dead"
        self._require(not (stays and long_dead), "the DLQ message of a dead job stays", what, key)

    def _present(self, message: Message) -> tuple[str, Item] | None:
        """The job of a message, if it still has the generation of the message."""
        wire = json.loads(message.body)
        key = f"{wire['tenant']}#{wire['id']}"
        item = self._world.jobs.items.get((key,))
        return (key, item) if item and number_of(item, "generation") == wire["generation"] else None

    def _require(self, holds: bool, check: str, what: str, key: str) -> None:
        require_in_task(self._world.scheduler, holds, check, what, key)

    @property
    def _by_publish(self) -> bool:
        task = self._world.scheduler.current
        return task is not None and task.process.name.startswith("publish")

    @property
    def _now_ms(self) -> int:
        return self._world.scheduler.now_ms

    @property
    def _skew_ms(self) -> int:
        return FAR_OFF_MS if self._world.faults.counted[Fault.CLOCK_FAR_OFF] else LARGEST_SKEW_MS


def _is_of(reference: Reference, key: str, generation: int) -> bool:
    return f"{reference.tenant}#{reference.job_id}" == key and reference.generation == generation


__all__ = ["DispatchChecks"]
