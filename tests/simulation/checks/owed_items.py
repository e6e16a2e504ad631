"""Checks of each write of the items of owed work: who owes it keeps what is known of it, and each try is counted.

Publish owes work of each kind, and every caller that deletes payloads owes a deletion.
"""

import json
from collections.abc import Iterator
from typing import Final

from tests.simulation.checks.table_watch import watch_items
from tests.simulation.checks.violation import Item, number_of, require, state_of, text_of
from tests.simulation.world.dynamodb_table import Record
from tests.simulation.world.faults import Fault
from tests.simulation.world.trace import Change
from tests.simulation.world.world import World
from tidemill.application.dispatch.owed import Kind, Work
from tidemill.domain.states import State
from tidemill.dynamodb.dispatch.owed_items import owed_key
from tidemill.names import JOB_KEY

_PREFIX: Final = "!owed#"
_CHECK: Final = "owed work says since when and how often it was tried"
_PUBLISH: Final = "publish"
_NOT_LOST: Final = "owed work is done before it ends"
_PARTITIONS: Final = frozenset(f"owed#{shard}" for shard in range(4))
#: The pause after a try in vain. It doubles from the first to the longest.
_FIRST_PAUSE_MS: Final = 60_000
_ARRIVES_WITHIN_MS: Final = 60_000
_LONGEST_PAUSE_MS: Final = 15 * 60_000
_MOST_DOUBLINGS: Final = 4
#: The time between the look at the clock and the write, with retries.
_CALLS_TAKE_MS: Final = 15_000


def owed_dispatch(job_key: str) -> str:
    """The key of the item that owes the message of a job."""
    tenant, _, job_id = job_key.rpartition("#")
    return str(owed_key(Work(kind=Kind.DISPATCH, tenant=tenant, name=job_id))[JOB_KEY]["S"])


def owed_advance(tenant: str, group: str) -> str:
    """The key of the item that owes the advance of a group."""
    return str(owed_key(Work(kind=Kind.ADVANCE, tenant=tenant, name=group))[JOB_KEY]["S"])


class OwedItemChecks:
    """Watches the items of owed work in the jobs table of one world."""

    def __init__(self, world: World) -> None:
        self._world = world
        #: By version and number of failures, the process that wrote them first.
        self._versions: dict[tuple[str, int], str] = {}
        #: Versions without the number of failures, and those with which the SDK has begun an item again.
        self._known: set[str] = set()
        self._begun_again: set[str] = set()
        #: By key of owed work, when it was written last, in milliseconds.
        self._written_ms: dict[str, int] = {}
        watch_items(world, self._changed)

    def _changed(self, key: str, record: Record) -> None:
        before, after = record.before, record.after
        task = self._world.scheduler.current
        if not key.startswith(_PREFIX) or task is None:
            return
        by, now_ms = task.process.name, record.at_ms + task.process.skew_ms
        since_ms = self._written_ms.get(key, 0)
        self._written_ms[key] = self._world.scheduler.now_ms
        if after is None:
            require(not by.startswith(_PUBLISH), _CHECK, f"{by} deleted it", key)
            self._not_dropped(key, before or {}, since_ms)
            return
        version = (text_of(after, "version"), number_of(after, "failures"))
        # The SDK may send a call again after the work was done, which begins it again, and then once more.
        if before is None and version[0] in self._known:
            self._begun_again.add(version[0])
        self._known.add(version[0])
        fresh = version not in self._versions or (version[0] in self._begun_again and self._versions[version] == by)
        require(bool(version[0]) and fresh, _CHECK, f"version {version} is not fresh", key)
        self._versions.setdefault(version, by)
        require(text_of(after, "attention") in _PARTITIONS, _CHECK, f"{after.get('attention')} has no work", key)
        owes = self._owes(key, before, after, by)
        if before is None:
            self._begins(key, after, now_ms)
        elif owes:
            kept = [name for name in ("since", "tries", "attention_at") if after.get(name) != before.get(name)]
            require(not kept and "resent" not in after, _CHECK, f"{by} changed {kept}", key)
        else:
            self._put_off(key, before, after, now_ms)
            self._sent_again(key, before, after, since_ms)

    def _begins(self, key: str, after: Item, now_ms: int) -> None:
        fresh = number_of(after, "tries") == 0 and "resent" not in after and bool(text_of(after, "error"))
        late_ms = number_of(after, "since") - now_ms
        # A write of the job that the payload belongs to may still arrive.
        later = _work(key)[0] == Kind.DELETE_PAYLOAD and self._is_present(late_ms - _ARRIVES_WITHIN_MS)
        when = after.get("since") == after.get("attention_at") and (self._is_present(late_ms) or later)
        require(fresh and when, _CHECK, f"it begins as {after}", key)

    def _put_off(self, key: str, before: Item, after: Item, now_ms: int) -> None:
        tries = number_of(before, "tries")
        counted = number_of(after, "tries") == tries + 1 and after.get("since") == before.get("since")
        require(counted, _CHECK, f"{tries} tries became {after.get('tries')}, since {after.get('since')}", key)
        pause_ms = min(_FIRST_PAUSE_MS << min(tries, _MOST_DOUBLINGS), _LONGEST_PAUSE_MS)
        late_ms = number_of(after, "attention_at") - now_ms - pause_ms
        require(self._is_present(late_ms), _CHECK, f"put off for {pause_ms + late_ms} ms after {tries} tries", key)

    def _owes(self, key: str, before: Item | None, after: Item, by: str) -> bool:
        """Whether the write owes the work, and so counts one failure more. Other writes count none."""
        step = number_of(after, "failures") - number_of(before, "failures")
        may = {1} if by.startswith(_PUBLISH) else {0, 1} if _work(key)[0] == Kind.DELETE_PAYLOAD else {0}
        require(step in may, _CHECK, f"{by} counted {step} failures", key)
        return step == 1

    def _sent_again(self, key: str, before: Item, after: Item, since_ms: int) -> None:
        """Work is marked as sent again after the write to the job that makes publish send it, and not without."""
        if "resent" in after and "resent" not in before:
            asked = any(
                (change.after or {}).get("nudged_at") != (change.before or {}).get("nudged_at")
                for change in self._changes_of(_job_key(key), since_ms)
            )
            require(asked, _NOT_LOST, "it is marked as sent again, and the job was not written", key)

    def _not_dropped(self, key: str, before: Item, since_ms: int) -> None:
        """The message that is owed for a running job would bring the job back if its worker died."""
        job_key = _job_key(key)
        job = self._world.jobs.items.get((job_key,))
        runs = state_of(job) is State.RUNNING if job and "state" in job else False
        unchanged = runs and not any(self._changes_of(job_key, since_ms))
        require(not unchanged or "resent" in before, _NOT_LOST, "it is dropped while the job runs", key)

    def _changes_of(self, job_key: str, since_ms: int) -> Iterator[Change]:
        return (one for one in self._world.trace.changes if one.key == job_key and one.at_ms >= since_ms)

    def _is_present(self, difference_ms: int) -> bool:
        frozen = self._world.faults.counted[Fault.FROZEN_MID_CALL] > 0
        return -_CALLS_TAKE_MS <= difference_ms <= 0 or frozen


def _work(key: str) -> tuple[str, str, str]:
    """Kind, tenant and name."""
    kind, tenant, name, *_ = json.loads(key.removeprefix(_PREFIX))
    return kind, tenant, name


def _job_key(key: str) -> str:
    """Return the key of the job whose message is owed. Empty for other work."""
    kind, tenant, name = _work(key)
    return f"{tenant}#{name}" if kind == Kind.DISPATCH else ""


__all__ = ["OwedItemChecks", "owed_advance", "owed_dispatch"]
