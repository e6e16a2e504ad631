"""Checks of each write of the items of groups: the head, the tail, and the places of waiting jobs.

The order of the writes of one transaction is that of its entries: the job, then its place, then the head and the tail.
"""

import json
from collections.abc import Iterator
from typing import Final

from tests.simulation.checks.table_watch import watch_items
from tests.simulation.checks.violation import Item, number_of, require, state_of, text_of
from tests.simulation.world.dynamodb_table import Record
from tests.simulation.world.faults import Fault
from tests.simulation.world.lambda_environments import FAR_OFF_MS, LARGEST_SKEW_MS
from tests.simulation.world.world import World
from tidemill.domain.states import TERMINAL, State

_HEAD, _TAIL, _PLACE = "!head#", "!tail#", "!place#"
_ORDER: Final = "positions of a group rise one by one"
_TURN: Final = "the next of a group has its turn"
_KEPT_MS: Final = 86_400_000
#: The most cancelled jobs that one turn passes.
_MOST_PASSED: Final = 25
#: A call may be retried, wait for other writes of the group, and be frozen in between.
_CALLS_TAKE_MS: Final = 100_000
_HAS_TURN: Final = frozenset({State.QUEUED, State.SCHEDULED})


class GroupItemChecks:
    """Watches the jobs table of one world, and runs at its end."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._versions: set[str] = set()
        watch_items(world, self._changed)

    def at_end(self) -> None:
        """An idle group has no tail, and one with a tail has a head. Raises `Violation`."""
        for (key,), item in self._world.jobs.items.items():
            if key.startswith(_TAIL):
                head = self._head(key.removeprefix(_TAIL))
                require(bool(head) and "expires_at" not in head, _ORDER, "an idle group has a tail", key)
                ahead = number_of(item, "sequence") >= number_of(head, "sequence")
                require(ahead, _ORDER, f"the tail is at {item['sequence']}, the head at {head['sequence']}", key)

    def _changed(self, key: str, record: Record) -> None:
        before, after = record.before, record.after
        if key.startswith((_HEAD, _TAIL)) and after is not None:
            self.each_write_has_a_fresh_version(key, after)
        if key.startswith(_HEAD) and after is not None:
            self.heads_follow_the_order(key, before, after)
        elif key.startswith(_TAIL) and after is not None:
            self.tails_follow_the_places(key, before, after)
        elif key.startswith(_PLACE):
            self.places_are_those_of_waiting_jobs(key, after)

    def each_write_has_a_fresh_version(self, key: str, after: Item) -> None:
        """Without one, a write that read the item before this one would not notice it."""
        version = text_of(after, "version")
        require(bool(version) and version not in self._versions, _ORDER, f"version {version} is not fresh", key)
        self._versions.add(version)

    def heads_follow_the_order(self, key: str, before: Item | None, after: Item) -> None:
        was, now = number_of(before, "sequence"), number_of(after, "sequence")
        idle = "expires_at" in after
        require(not (idle and "job" in after), _ORDER, "an idle group has a head", key)
        if idle:
            require(now == was, _ORDER, f"a group became idle and moved from {was} to {now}", key)
            self.idle_groups_are_kept(key, after)
        elif before is None or "expires_at" in before:
            require(now == was + 1 and "job" in after, _ORDER, f"an idle group moved from {was} to {now}", key)
        elif now == was:
            require(after.get("job") == before.get("job"), _TURN, f"{after.get('job')} took the place {now}", key)
        else:
            passed = now - was - ("job" in after)
            require(0 <= passed <= _MOST_PASSED, _TURN, f"the head moved from {was} to {now}", key)
            for other, item in self._jobs(key.removeprefix(_HEAD)):
                between = was < number_of(item, "sequence") < now + ("job" not in after)
                ended = state_of(item) in TERMINAL
                require(not between or ended, _TURN, f"the group passed a {state_of(item)} job", other)
            if "job" in after:
                self.the_turn_is_that_of_the_job(key, text_of(after, "job"), now)

    def the_turn_is_that_of_the_job(self, key: str, job_id: str, sequence: int) -> None:
        tenant, _ = json.loads(key.removeprefix(_HEAD))
        job = self._world.jobs.items.get((f"{tenant}#{job_id}",), {})
        fits = number_of(job, "sequence") == sequence and bool(job) and state_of(job) in _HAS_TURN
        require(fits, _TURN, f"{job_id} has place {job.get('sequence')}, not {sequence}", key)

    def idle_groups_are_kept(self, key: str, after: Item) -> None:
        """For a day. A new head would begin with the first position again."""
        late_ms = number_of(after, "expires_at") * 1000 - self._world.scheduler.now_ms - _KEPT_MS
        frozen = self._world.faults.counted[Fault.FROZEN_MID_CALL]
        kept = frozen or -self._slack_ms <= late_ms <= self._slack_ms
        require(bool(kept), "idle groups are kept for a day", f"{late_ms} ms longer", key)
        for other, item in self._jobs(key.removeprefix(_HEAD)):
            require(state_of(item) is not State.WAITING, _TURN, "its group became idle", other)

    def tails_follow_the_places(self, key: str, before: Item | None, after: Item) -> None:
        name, now = key.removeprefix(_TAIL), number_of(after, "sequence")
        was = number_of(before or self._head(name), "sequence")
        require(now > was, _ORDER, f"the tail moved from {was} to {now}", key)
        for sequence in range(was + 1, now + 1):
            place = self._place(name, sequence)
            require((place,) in self._world.jobs.items, _ORDER, f"position {sequence} has no place", key)

    def places_are_those_of_waiting_jobs(self, key: str, after: Item | None) -> None:
        tenant, group, sequence = json.loads(key.removeprefix(_PLACE))
        if after is None:
            head = self._head(json.dumps([tenant, group], separators=(",", ":"), ensure_ascii=False))
            require(number_of(head, "sequence") >= sequence, _TURN, "its place was deleted before its turn", key)
            return
        job = self._world.jobs.items.get((f"{tenant}#{text_of(after, 'job')}",), {})
        fits = (text_of(job, "group"), number_of(job, "sequence")) == (group, sequence)
        require(fits and state_of(job) is State.WAITING, _ORDER, f"its place leads to {job.get('sequence')}", key)

    def _jobs(self, name: str) -> Iterator[tuple[str, Item]]:
        """The jobs of a group, by key."""
        tenant, group = json.loads(name)
        for (key,), item in self._world.jobs.items.items():
            if text_of(item, "group") == group and key.rpartition("#")[0] == tenant and "state" in item:
                yield key, item

    def _head(self, name: str) -> Item:
        return self._world.jobs.items.get((_HEAD + name,), {})

    @staticmethod
    def _place(name: str, sequence: int) -> str:
        return f"{_PLACE}{name[:-1]},{sequence}]"

    @property
    def _slack_ms(self) -> int:
        far = self._world.faults.counted[Fault.CLOCK_FAR_OFF]
        return _CALLS_TAKE_MS + (FAR_OFF_MS if far else LARGEST_SKEW_MS)


__all__ = ["GroupItemChecks"]
