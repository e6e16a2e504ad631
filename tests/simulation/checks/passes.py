"""Checks of reconcile's passes over the table: each reads every segment, and moves past no job that it had to nudge."""

from collections import defaultdict
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from tests.simulation.checks.table_watch import watch_jobs
from tests.simulation.checks.violation import Item, number_of, require, require_in_task, state_of, text_of
from tests.simulation.world.code_versions import PRESENT
from tests.simulation.world.dynamodb_table import Record
from tests.simulation.world.sqs_queue import Queue
from tests.simulation.world.world import World
from tidemill.application.passes.table_pass import MOST_TRIES
from tidemill.domain.states import State
from tidemill.dynamodb.passes.pass_items import PASS_KEY, PREFIX
from tidemill.names import JOB_KEY

_PASS: Final = PASS_KEY[JOB_KEY]["S"]
#: Longer than a run, which asks once for the delay of each lane, and than any difference between clocks.
_LONGEST_RUN_MS: Final = 1_000_000
#: Once faults have stopped, a pass over the small table ends within this time.
_PASS_WITHIN_MS: Final = 2 * 3_600_000

#: Segments, segment, and the key after which the page begins.
Page = tuple[int, int, str | None]


class PassChecks:
    """Watches the items of passes in the jobs table of one world."""

    def __init__(self, world: World) -> None:
        self._world = world
        #: By page that was read, the keys after which the next one may begin: that of the page, None with its last, and
        #: those of its items, if the time of a run ended amid them.
        self._ends: defaultdict[Page, set[str | None]] = defaultdict(set)
        #: By lane, when a message was last seen on its queue.
        self._seen_ms: defaultdict[str, int] = defaultdict(int)
        #: By job, when it was last woken. As a fresh job, it is late from then on.
        self._woken_ms: dict[str, int] = {}
        self._quiet_from_ms = 0
        world.dynamodb.scan_watchers.append(self._scanned)
        world.jobs.watchers.append(self._changed)
        watch_jobs(world, changed=(self._woken,))
        for name, queue in world.lanes.items():
            queue.watchers.append(partial(self._message, name))

    def quiet_begins(self) -> None:
        self._quiet_from_ms = self._world.scheduler.now_ms

    def at_end(self) -> None:
        """Raises `Violation`."""
        item = self._world.jobs.items.get((_PASS,))
        if item is None or "ended_at" in item:
            return
        open_ms = self._world.scheduler.now_ms - max(number_of(item, "began_at"), self._quiet_from_ms)
        require(open_ms <= _PASS_WITHIN_MS, "a pass ends in time", f"it has been open for {open_ms} ms", _PASS)

    def _message(self, lane: str, visible_ms: int) -> None:
        self._seen_ms[lane] = max(self._seen_ms[lane], visible_ms, self._world.scheduler.now_ms)

    def _scanned(self, request: Mapping[str, Any], answer: Mapping[str, Any]) -> None:
        if "Segment" in request:
            first, last = request.get("ExclusiveStartKey"), answer.get("LastEvaluatedKey")
            page = (request["TotalSegments"], request["Segment"], _key(first))
            self._ends[page] |= {_key(last), *map(_key, answer["Items"])}

    def _changed(self, record: Record) -> None:
        key, after = record.keys[JOB_KEY]["S"], record.after
        if not key.startswith(PREFIX) or after is None:
            return
        if key == _PASS:
            self._pass_changed(record.before, after)
        else:
            self._segment_changed(int(key.rpartition("/")[2]), record.before, after)

    def _woken(self, key: str, before: Item, after: Item) -> None:
        if state_of(before) is State.SCHEDULED and state_of(after) is State.QUEUED:
            self._woken_ms[key] = self._world.scheduler.now_ms

    def _pass_changed(self, before: Item | None, after: Item) -> None:
        rises = number_of(after, "number") >= number_of(before or {}, "number")
        self._require(rises, "passes follow each other", f"{before} became {after}")
        if "ended_at" in after and before and "ended_at" not in before:
            for number in range(number_of(after, "segments")):
                item = self._world.jobs.items.get((f"{_PASS}/{number}",), {})
                done = number_of(item, "pass") == number_of(after, "number") and item["done"]["BOOL"]
                self._require(done, "a pass reads every segment", f"segment {number} is {item}")

    def _segment_changed(self, segment: int, before: Item | None, after: Item) -> None:
        same = before is not None and number_of(before, "pass") == number_of(after, "pass")
        was = before if before and same else {}
        first, last = text_of(was, "cursor") or None, text_of(after, "cursor") or None
        done = after["done"]["BOOL"]
        if (first, False) == (last, done):
            return  # another try of the same page
        segments = number_of(self._world.jobs.items.get((_PASS,), {}), "segments")
        read = last in self._ends[segments, segment, first]
        on = not was or not was["done"]["BOOL"]
        self._require(read and on, "a cursor moves past one page", f"segment {segment}: {before} became {after}")
        if number_of(was, "tries") + 1 < MOST_TRIES:
            for (key,), item in self._world.jobs.items.items():
                here = sum(key.encode()) % segments == segment and (first or "") < key and (done or key <= (last or ""))
                nudged = not (here and self._lost(key, item))
                require_in_task(
                    self._world.scheduler, nudged, "a pass moves past no lost job", "its cursor passed it", key
                )

    def _lost(self, key: str, item: Item) -> bool:
        """Whether reconcile must have nudged or woken the job: it has been late for long, on an idle lane."""
        if "due" not in item or "nudged_at" in item or number_of(item, "schema") > PRESENT.document_schema:
            return False
        now_ms, lane = self._world.scheduler.now_ms, text_of(item, "lane")
        queue: Queue = self._world.lanes[lane]
        limit_ms = self._world.deployment.stage.reconcile_limit_seconds * 1000
        idle = not queue.messages and now_ms - self._seen_ms[lane] > _LONGEST_RUN_MS
        late_from_ms = max(number_of(item, "due"), self._woken_ms.get(key, 0))
        return idle and late_from_ms <= now_ms - limit_ms - _LONGEST_RUN_MS and bool(state_of(item))

    def _require(self, holds: bool, title: str, detail: str) -> None:
        require_in_task(self._world.scheduler, holds, title, detail, _PASS)


def _key(key: Mapping[str, Any] | None) -> str | None:
    return key[JOB_KEY]["S"] if key else None
