"""Checks of batches: each callback comes into being once and in time, and the counts are those of the documents."""

import json
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Final

from tests.simulation.checks.table_watch import watch_jobs
from tests.simulation.checks.violation import (
    Item,
    errors_of,
    has_expired,
    maps_of,
    number_of,
    require,
    run_ended,
    state_of,
    tenant_of,
    text_of,
)
from tests.simulation.world.faults import Fault
from tests.simulation.world.lambda_environments import FAR_OFF_MS, LARGEST_SKEW_MS
from tests.simulation.world.world import World
from tidemill.domain.batches.batches import (
    CALLBACKS,
    MISSING,
    ON_COMPLETE,
    ON_FAILURE,
    ON_SUCCESS,
    BatchFailed,
)
from tidemill.domain.batches.composite_cancels import CANCELLED
from tidemill.domain.errors import KeyReusedError
from tidemill.domain.states import FINAL_STATES, TERMINAL, State
from tidemill.names import BATCH_TYPE

KINDS: Final = CALLBACKS
_ONCE: Final = "a callback of a batch comes into being once"
_CALLED: Final = "a batch that ends submits its callbacks"
_AT_REST: Final = "a batch ends when all its jobs are at rest"
_COUNTED: Final = "a batch counts each of its jobs once"
_CLOSED: Final = "no job joins a batch that has ended"
_KEPT: Final = "a job that joined a batch is counted in it"
_CANCELLED: Final = "a cancelled batch has cancelled its jobs"
_ENDS_CANCELLED: Final = "a batch that was cancelled ends so"
_UNREACHED: Final = "no key of a caller leads to a callback"
_REDRIVEN: Final = "a redrive of a batch redrives its dead jobs"


@dataclass(slots=True)
class _Seen:
    """What became of one batch."""

    asked: frozenset[str] = frozenset()
    #: The last known state of each member by its key, also of one that was deleted since.
    members: dict[str, State] = field(default_factory=dict)
    #: The callbacks that its ends require.
    owed: set[str] = field(default_factory=set)
    #: The callbacks that were submitted.
    made: Counter[str] = field(default_factory=Counter)


class BatchChecks:
    """Watches the jobs table of one world, and runs at its end."""

    def __init__(self, world: World) -> None:
        self._world = world
        #: The id of each batch that was opened, by tenant and name.
        self.opened: dict[tuple[str, str], str] = {}
        #: The keys of each batch and of the job that was accepted for it.
        self.joined: list[tuple[str, str]] = []
        self._batches: dict[str, _Seen] = defaultdict(_Seen)
        watch_jobs(world, changed=(self.a_member_changes, self.a_batch_ends), inserted=self.a_job_is_made)

    def a_job_is_made(self, key: str, after: Item) -> None:
        if text_of(after, "type") == BATCH_TYPE:
            self._batches[key].asked = frozenset(json.loads(text_of(after, "payload")))
        if "batch" in after:
            of = _batch_of(key, after)
            batch = self._world.jobs.items.get((of,))
            require(not _has_ended(batch), _CLOSED, f"{key} joined {of}", key)
            self._note(key, after)
        of = f"{tenant_of(key)}#{text_of(after, 'parent')}"
        if of in self._batches:
            self._a_callback(of, key, json.loads(text_of(after, "payload"))["key"])

    def a_member_changes(self, key: str, _before: Item, after: Item) -> None:
        if "batch" in after:
            self._note(key, after)

    def _note(self, key: str, after: Item) -> None:
        self._batches[_batch_of(key, after)].members[key] = state_of(after) or State.QUEUED

    def _a_callback(self, of: str, key: str, kind: str) -> None:
        seen = self._batches[of]
        seen.made[kind] += 1
        require(seen.made[kind] == 1 and kind in seen.asked, _ONCE, f"{kind} {seen.made[kind]} times", key)
        for member, state in seen.members.items():
            document = self._world.jobs.items.get((member,), {})
            # Another redrive may be faster than the end of the batch.
            at_rest = state in TERMINAL or (kind != ON_SUCCESS and "redrives" in document)
            require(at_rest, _AT_REST, f"{member} is {state} at {kind}", of)
        dead = State.DEAD in seen.members.values()
        require(kind != ON_SUCCESS or not dead, _AT_REST, "a job is dead at the success", of)

    def a_batch_ends(self, key: str, before: Item, after: Item) -> None:
        if text_of(after, "type") != BATCH_TYPE or not run_ended(before, after):
            return
        seen = self._batches[key]
        met = {text_of(error, "error_class") for error in errors_of(after)}
        require(KeyReusedError.__name__ not in met, _UNREACHED, f"its callback met the job of a caller: {met}", key)
        ends_itself = state_of(after) is State.SUCCEEDED or _failed(after)
        require(not (ends_itself and _asked_to_cancel(after)), _ENDS_CANCELLED, f"it is {state_of(after)}", key)
        if state_of(after) is State.SUCCEEDED:
            counts = Counter(str(state) for state in seen.members.values())
            found = json.loads(text_of(after, "result"))
            require(found == dict(counts), _COUNTED, f"it counts {found}, not {dict(counts)}", key)
            seen.owed |= seen.asked & {ON_SUCCESS, ON_COMPLETE}
            require(State.DEAD not in seen.members.values(), _AT_REST, "it succeeded with dead jobs", key)
        elif state_of(after) is State.CANCELLED and _asked_to_cancel(after):
            live = {member: state for member, state in seen.members.items() if not self._is_final(member, state)}
            require(not live, _CANCELLED, f"{live} have not ended", key)
        elif _failed(after):
            counts = json.loads(text_of(after, "checkpoint"))["counts"]
            total = sum(counts.values())
            require(total == len(seen.members), _COUNTED, f"it counts {total}, not {len(seen.members)}", key)
            seen.owed |= seen.asked & {ON_FAILURE, ON_COMPLETE}
            self._redrove(key, after, counts)

    def _is_final(self, member: str, state: State) -> bool:
        """Also of a dead job that was deleted or has expired: the batch could not find it any more."""
        return state in FINAL_STATES or (state is State.DEAD and not self._kept(member))

    def _kept(self, member: str) -> Item | None:
        """Its document, unless it was deleted or has expired by the clock of a worker."""
        document, world = self._world.jobs.items.get((member,)), self._world
        ahead_ms = FAR_OFF_MS if world.faults.counted[Fault.CLOCK_FAR_OFF] else LARGEST_SKEW_MS
        return None if document and has_expired(document, world.scheduler.now_ms + ahead_ms) else document

    def _redrove(self, key: str, batch: Item, counts: dict[str, int]) -> None:
        """Each job that is dead now has died since the last redrive. No redrive takes one that has expired."""
        if "redrives" not in batch:
            return
        asked_ms = max(number_of(entry["M"], "at") for entry in batch["redrives"]["L"])
        for member, state in self._batches[key].members.items():
            if state is State.DEAD and (document := self._kept(member)) and counts.get(MISSING) is None:
                late = number_of(document, "finished_at") >= asked_ms
                require(late, _REDRIVEN, f"{member} is dead since before the redrive", key)

    def at_end(self) -> None:
        """Raises `Violation`."""
        for batch, job in self.joined:
            require(job in self._batches[batch].members, _KEPT, f"{job} was accepted", batch)
        for key, seen in self._batches.items():
            # The callbacks are inserted by the transaction that ends the batch.
            require(seen.made.keys() == seen.owed, _CALLED, f"{set(seen.made)}, not {set(seen.owed)}", key)


def _batch_of(key: str, item: Item) -> str:
    return f"{tenant_of(key)}#{text_of(item, 'batch')}"


def _failed(item: Item) -> bool:
    errors = errors_of(item)
    last = text_of(errors[-1], "error_class") if errors else ""
    return state_of(item) is State.DEAD and last == BatchFailed.__name__


def _asked_to_cancel(item: Item) -> bool:
    """Whether the batch was asked to cancel, and not its job by itself."""
    return "cancel" not in item and any(text_of(one, "name") == CANCELLED for one in maps_of(item, "signals"))


def _has_ended(item: Item | None) -> bool:
    return item is not None and (state_of(item) is State.SUCCEEDED or _failed(item))


__all__ = ["KINDS", "BatchChecks"]
