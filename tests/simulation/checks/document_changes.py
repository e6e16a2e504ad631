"""Checks of each single change to a document, made at the time of the write."""

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Final

from tests.simulation.checks.table_watch import watch_items
from tests.simulation.checks.violation import (
    Item,
    Violation,
    group_of,
    has_expired,
    joined,
    maps_of,
    mark_of,
    number_of,
    require,
    state_of,
    tenant_of,
    text_of,
    waits_alone,
)
from tests.simulation.world.code_versions import job_type
from tests.simulation.world.dynamodb_table import Record
from tests.simulation.world.faults import Fault
from tests.simulation.world.lambda_environments import FAR_OFF_MS, LARGEST_SKEW_MS
from tests.simulation.world.world import World
from tidemill.application.attempt.attempt import CLOCK_SKEW_MARGIN
from tidemill.domain.job import CRASHED
from tidemill.domain.limits.limit_state import AHEAD, RESERVED
from tidemill.domain.states import AT_REST, TERMINAL, State

_LIVE_WITH_DUE: Final = frozenset({State.QUEUED, State.RETRYING, State.SCHEDULED, State.PARKED, State.RUNNING})
_AGAIN: Final = frozenset({State.QUEUED, State.RETRYING, State.SCHEDULED, State.PARKED})
#: States of the attention index, each with the attribute that it is sorted by.
_IN_ATTENTION: Final = {State.SCHEDULED: "due", State.PARKED: "created_at", State.DEAD: "finished_at"}
_AT_REST: Final = frozenset({State.WAITING, State.SCHEDULED, State.QUEUED, State.RETRYING, State.PARKED})
_ENDED: Final = frozenset({State.SUCCEEDED, State.DEAD, State.CANCELLED, State.EXPIRED})
#: State before, None for a new job, and the states that one write may bring.
_NEXT: Final[Mapping[State | None, frozenset[State]]] = {
    None: frozenset({State.WAITING, State.SCHEDULED, State.QUEUED}),
    State.WAITING: frozenset({State.WAITING, State.QUEUED, State.SCHEDULED, State.CANCELLED}),
    State.SCHEDULED: frozenset({State.SCHEDULED, State.QUEUED, State.RUNNING, State.CANCELLED}),
    State.QUEUED: frozenset({State.QUEUED, State.RUNNING, State.PARKED, State.CANCELLED, State.DEAD}),
    State.RETRYING: frozenset({State.RETRYING, State.RUNNING, State.PARKED, State.CANCELLED, State.DEAD}),
    State.RUNNING: (_AT_REST | _ENDED | {State.RUNNING}) - {State.WAITING},
    State.PARKED: frozenset({State.PARKED, State.QUEUED, State.CANCELLED}),
    State.SUCCEEDED: frozenset(),
    State.DEAD: frozenset({State.DEAD, State.QUEUED, State.WAITING, State.CANCELLED}),
    State.CANCELLED: frozenset(),
    State.EXPIRED: frozenset(),
}
#: Attributes that a redrive clears.
_CLEARED_BY_REDRIVE: Final = [
    "expires_at",
    "finished_at",
    "death",
    "releases",
    "nudges",
    "nudged_at",
    "hops",
    "deadline",
    "useful_until",
    "cancel_requested_at",
    "run_at",
    "awaited",
    "wait",
    "holds",
    "hold_cause",
    "other_holds",
]
#: And those that one with another payload clears, too.
_GIVEN_TO_PAYLOAD: Final = ["steps", "checkpoint", "checkpoint_at", "progress_done", "progress_total", "signals"]

MILLISECOND: Final = timedelta(milliseconds=1)

Check = Callable[[str, Item | None, Item | None], None]


class DocumentChangeChecks:
    """Watches the jobs table of one world."""

    def __init__(self, world: World) -> None:
        self._world = world
        #: The process that made each owner token.
        self.claimed_by: dict[str, str] = {}
        #: By token, runs that settled or released: (milliseconds, key of the job).
        self.settled: dict[str, tuple[int, str]] = {}
        #: By token, keys of jobs whose lease was taken over.
        self.lost: dict[str, str] = {}
        self.inserted: Counter[str] = Counter()
        self.children: Counter[str] = Counter()
        self._there: dict[str, Item] = {}
        self._checks: tuple[Check, ...] = (
            self.only_legal_transitions,
            self.generations_only_rise,
            self.attempts_count_runs,
            self.only_the_owner_ends_a_run,
            self.leases_are_respected,
            self.checkpoints_are_fenced,
            self.only_terminal_jobs_expire,
            self.due_and_owner_match_the_state,
            self.attention_matches_the_state,
            self.groups_keep_their_order,
            self.cancelled_jobs_end,
            self.redriven_jobs_start_afresh,
        )
        watch_items(world, self._changed)

    def _changed(self, key: str, record: Record) -> None:
        if "state" not in (record.after or record.before or {}):
            self._slots_expire_with_a_lease(key, record.after or {})
            return
        for check in self._checks:
            check(key, record.before, record.after)
        if record.after is None:
            self._there.pop(key, None)
        else:
            self._there[key] = record.after

    def only_legal_transitions(self, key: str, before: Item | None, after: Item | None) -> None:
        check = "only legal transitions"
        if after is None:
            require(state_of(before) in TERMINAL, check, f"a {state_of(before)} job was deleted", key)
            unique = number_of(before, "unique_until") > self._now_ms + self._skew_ms
            require(not unique, "a unique job stays for its period", "it was deleted within its unique period", key)
            return
        anew = before is None or text_of(before, "trace") != text_of(after, "trace")
        anew = anew or before is None or before["created_at"] != after["created_at"]
        if anew and "flow" in after and (before or state_of(after) is State.CANCELLED):
            self._a_node_is_replaced(key, before, after)
        else:
            self._only_legal_transitions(key, before, after, anew=anew)

    def _a_node_is_replaced(self, key: str, before: Item | None, after: Item) -> None:
        """Or it has no job: its document only says so. `FlowChecks` looks at the rest."""
        check = "only legal transitions"
        gone = before is None or has_expired(before, self._now_ms, late_ms=self._skew_ms + 1000)
        require(gone or mark_of(before) == "blocked", check, "a node was replaced that was not blocked", key)
        require(not mark_of(after) or state_of(after) is State.CANCELLED, check, f"it is {state_of(after)}", key)
        self.inserted[key] += 1

    def _only_legal_transitions(self, key: str, before: Item | None, after: Item, *, anew: bool) -> None:
        check = "only legal transitions"
        if anew:
            self.inserted[key] += 1
            self.children[f"{tenant_of(key)}#{text_of(after, 'parent')}"] += 1
            gone = before is None or has_expired(before, self._now_ms, late_ms=self._skew_ms + 1000)
            require(gone, check, "a job was replaced before it expired", key)
            unique = number_of(before, "unique_until") > self._now_ms + self._skew_ms
            require(not unique, "a unique job stays for its period", "it was replaced within its unique period", key)
        came_from = None if anew else state_of(before)
        if not anew and joined(before, after):
            # `BurstChecks` looks at the rest.
            moves = {State.SCHEDULED: State.QUEUED, State.QUEUED: State.SCHEDULED}
            legal = state_of(after) in {came_from, moves.get(came_from or State.RUNNING)}
            require(legal, check, f"joined: {came_from} -> {state_of(after)}", key)
            return
        if not anew and _rewritten(before or {}, after):
            # A migration leaves the state as it is. `MigrationChecks` looks at the rest.
            require(came_from is state_of(after) is not State.RUNNING, check, f"rewritten while {came_from}", key)
            return
        if "undone" in after and after["undone"] != (before or {}).get("undone"):
            # `UndoChecks` looks at the rest.
            require(came_from is state_of(after) is State.SUCCEEDED, check, f"undone while {came_from}", key)
            return
        if not anew and text_of(after, "superseded_by") != text_of(before, "superseded_by"):
            # A job at rest is cancelled by its correction, and any other one keeps its state.
            ends = State.CANCELLED if came_from in AT_REST else came_from
            require(state_of(after) is ends, check, f"superseded: {came_from} -> {state_of(after)}", key)
            return
        require(state_of(after) in _NEXT[came_from], check, f"{came_from} -> {state_of(after)}", key)

    def generations_only_rise(self, key: str, before: Item | None, after: Item | None) -> None:
        if not _same_job(before, after):
            return
        step = number_of(after, "generation") - number_of(before, "generation")
        require(step in {0, 1}, "generations only rise", f"generation moved by {step}", key)
        asks = state_of(after) in _AGAIN and state_of(before) in {State.RUNNING, State.DEAD}
        nudged = number_of(after, "nudges") > number_of(before, "nudges")
        require(
            not asks or nudged or step == 1,
            "a new dispatch has a new generation",
            f"{state_of(before)} -> {state_of(after)}",
            key,
        )

    def attempts_count_runs(self, key: str, before: Item | None, after: Item | None) -> None:
        if not _same_job(before, after):
            return
        check = "attempts count runs"
        step = number_of(after, "attempt") - number_of(before, "attempt")
        if state_of(after) is State.RUNNING and text_of(before, "owner") != text_of(after, "owner"):
            require(step == 1, check, f"a claim moved the attempt by {step}", key)
        elif state_of(before) is State.RUNNING and state_of(after) in _AGAIN:
            failed = _failed(before, after)
            nudged = number_of(after, "nudges") > number_of(before, "nudges")
            require(step == 0 if failed or nudged else step < 0, check, f"the attempt moved by {step}", key)
            type_ = text_of(after, "type")
            most = max(job_type(type_).retry.max_attempts, *self._world.overridden_attempts[type_], 0)
            require(not failed or number_of(after, "attempt") < most, check, "it is retried beyond its policy", key)

    def only_the_owner_ends_a_run(self, key: str, before: Item | None, after: Item | None) -> None:
        task = self._world.scheduler.current or self._world.scheduler.acting_for
        by = task.process.name if task else ""
        token, earlier = text_of(after, "owner"), text_of(before, "owner")
        if token and token != earlier:
            require(token not in self.claimed_by, "owner tokens are fresh", f"{token} was used before", key)
            # A claim is one write, never part of a transaction, so the claiming process is the current one.
            self.claimed_by[token] = by
        if earlier and token != earlier and text_of(after, "last_owner") == earlier:
            owner = self.claimed_by.get(earlier)
            # A transaction may commit after its caller was killed.
            require(not by or owner == by, "only the owner ends a run", f"{by} settled the run of {owner}", key)
            self.settled[earlier] = (self._now_ms, key)

    def leases_are_respected(self, key: str, before: Item | None, after: Item | None) -> None:
        """A takeover needs an expired lease, by any clock of the world."""
        earlier = text_of(before, "owner")
        if not earlier or after is None or text_of(after, "owner") == earlier:
            return
        if text_of(after, "last_owner") != earlier:
            early_ms = number_of(before, "due") - self._now_ms
            require(
                early_ms <= self._skew_ms,
                "leases are respected",
                f"taken over {early_ms} ms before the lease ended",
                key,
            )
            self.lost[earlier] = key

    def checkpoints_are_fenced(self, key: str, before: Item | None, after: Item | None) -> None:
        if _same_job(before, after) and text_of(before, "owner") == text_of(after, "owner"):
            saved = (before or {}).get("checkpoint_at") != (after or {}).get("checkpoint_at")
            task = self._world.scheduler.current
            if saved and task:
                owner = self.claimed_by.get(text_of(after, "owner"))
                require(owner == task.process.name, "checkpoints are fenced", f"{task.process.name}, not {owner}", key)

    def only_terminal_jobs_expire(self, key: str, _before: Item | None, after: Item | None) -> None:
        bad = after is not None and "expires_at" in after and state_of(after) not in TERMINAL
        require(not bad, "only terminal jobs expire", f"a {state_of(after)} job has a TTL", key)

    def due_and_owner_match_the_state(self, key: str, _before: Item | None, after: Item | None) -> None:
        if after is not None:
            state = state_of(after)
            fits = ("due" in after) is (state in _LIVE_WITH_DUE)
            require(fits, "due is set while a job is live", f"a {state} job, due: {after.get('due')}", key)
            fits = ("owner" in after) is (state is State.RUNNING)
            require(fits, "only a running job has an owner", f"a {state} job, owner: {after.get('owner')}", key)

    def attention_matches_the_state(self, key: str, _before: Item | None, after: Item | None) -> None:
        if after is not None:
            state = state_of(after)
            entry = (text_of(after, "attention").partition("#")[0], after.get("attention_at"))
            # A job that waits for a signal is beside the scheduled ones.
            listed = State.SCHEDULED if waits_alone(after) else state
            wanted = (listed, after.get(_IN_ATTENTION[listed])) if listed in _IN_ATTENTION else ("", None)
            require(entry == wanted, "scheduled, parked and dead jobs are indexed", f"{state}: {entry}", key)

    def groups_keep_their_order(self, key: str, before: Item | None, after: Item | None) -> None:
        """A run may begin only when all earlier jobs of its group have ended and none of them blocks the group."""
        begins = state_of(after) is State.RUNNING and text_of(before, "owner") != text_of(after, "owner")
        if after is None or not begins or group_of(after) is None:
            return
        for other, held in self._there.items():
            if other == key or held.get("group") != after["group"] or tenant_of(other) != tenant_of(key):
                continue
            if number_of(held, "sequence") >= number_of(after, "sequence"):
                require(
                    state_of(held) is not State.RUNNING,
                    "one job of a group runs at a time",
                    f"{other} runs as well",
                    key,
                )
                continue
            passed = state_of(held) in TERMINAL and not (state_of(held) is State.DEAD and "blocks" in held)
            passed = passed or has_expired(held, self._now_ms, late_ms=self._skew_ms)
            require(passed, "groups keep their order", f"the earlier {other} is {state_of(held)}", key)

    def cancelled_jobs_end(self, key: str, before: Item | None, after: Item | None) -> None:
        check = "a job with a cancel request ends"
        if not _same_job(before, after) or before is None or after is None:
            return
        asked = "cancel_requested_at" in after and "cancel_requested_at" not in before
        require(
            not asked or state_of(after) is State.RUNNING,
            check,
            f"the request was written while {state_of(after)}",
            key,
        )
        if "cancel_requested_at" in before and text_of(after, "last_owner") == text_of(before, "owner") != "":
            released = number_of(after, "releases") > number_of(before, "releases")
            # The job did not run, so the next worker that claims it ends it.
            never_ran = released or _claim_was_taken_back(before, after)
            require(never_ran or state_of(after) in TERMINAL, check, f"it is {state_of(after)} after the run", key)

    def redriven_jobs_start_afresh(self, key: str, before: Item | None, after: Item | None) -> None:
        if after and _same_job(before, after) and state_of(before) is State.DEAD and state_of(after) not in TERMINAL:
            edited = "edited" in maps_of(after, "redrives")[-1]
            left = [name for name in _CLEARED_BY_REDRIVE + edited * _GIVEN_TO_PAYLOAD if name in after]
            require(
                not left and number_of(after, "attempt") == 0,
                "a redriven job starts afresh",
                f"it kept {left}, attempt {number_of(after, 'attempt')}",
                key,
            )

    def _slots_expire_with_a_lease(self, key: str, item: Item) -> None:
        """A limit slot of a dead worker is free as soon as its lease has expired."""
        for name, until in item.get("held", {"M": {}})["M"].items():
            left_ms = int(until["N"]) - self._now_ms
            if left_ms > self._longest_slot_ms + self._skew_ms:
                raise Violation("concurrency limits hold", f"{name} stays taken for {left_ms // 1000} s", key)

    @property
    def _longest_slot_ms(self) -> int:
        lanes = self._world.deployment.lanes
        lease_ms = max(lane.function_timeout_seconds for lane in lanes) * 1000 + CLOCK_SKEW_MARGIN // MILLISECOND
        return max(lease_ms, (AHEAD + RESERVED) // MILLISECOND)

    @property
    def _skew_ms(self) -> int:
        """Largest clock skew in this world."""
        return FAR_OFF_MS if self._world.faults.counted[Fault.CLOCK_FAR_OFF] else LARGEST_SKEW_MS

    @property
    def _now_ms(self) -> int:
        return self._world.scheduler.now_ms


def _claim_was_taken_back(before: Item, after: Item) -> bool:
    """Whether a worker undid a claim whose response was lost. Other ways to return an attempt are counted."""
    fell = number_of(after, "attempt") < number_of(before, "attempt")
    same = all(after.get(name) == before.get(name) for name in ("hops", "holds", "hold_cause", "wait"))
    return fell and same


def _failed(before: Item | None, after: Item | None) -> bool:
    """Whether this run left an error of its own. A snooze and a continuation may leave those of crashed runs."""
    errors = (after or {}).get("errors", {"L": []})["L"]
    if not errors or errors == (before or {}).get("errors", {"L": []})["L"]:
        return False
    return text_of(errors[-1]["M"], "error_class") != CRASHED


def _rewritten(before: Item, after: Item) -> bool:
    """A write that replaces the payload, except a redrive with another payload."""
    kept = all(before.get(name) == after.get(name) for name in ("payload", "payload_at"))
    return not kept and before["generation"] == after["generation"]


def _same_job(before: Item | None, after: Item | None) -> bool:
    return before is not None and after is not None and before["created_at"] == after["created_at"]
