"""Checks of the flight recorder: each transition is in the history, in order, at its time and with its cause.

What is expected follows from the documents before and after a write. The form of an entry is that of the table:
`milliseconds state attempt worker cause`.
"""

from collections import defaultdict
from dataclasses import dataclass
from typing import Final

from tests.simulation.checks.table_watch import watch_jobs
from tests.simulation.checks.violation import (
    Item,
    joined,
    map_of,
    maps_of,
    mark_of,
    number_of,
    payload_edited,
    require,
    run_ended,
    state_of,
    text_of,
    wait_began,
    waits_alone,
)
from tests.simulation.world.code_versions import MARK
from tests.simulation.world.world import World
from tidemill.domain.history import with_attempts
from tidemill.domain.states import State
from tidemill.dynamodb.history_entries import transitions

_RECORDED: Final = "each transition is in the history"
_MOST_KEPT: Final = 32
_LEAST_KEPT: Final = 4
_LEAST_KEPT_AFTER_FAILURE: Final = 12
_UNIT_BYTES: Final = 1024
_LARGEST_RESULT_BYTES: Final = 100
#: A job with one of these has done more than to succeed at once, or has more in its document than was submitted.
_MORE: Final = frozenset(
    {
        *("checkpoint", "checkpoint_at", "cancel", "errors", "nudged_at", "sequence", "wait", "hold_cause", "redrives"),
        *("signals", "awaited", "undo", "undoes", "supersedes", "superseded_by", "steps", "burst", MARK),
    }
)

#: The cause of a run that something asked a flow for.
_LOOK: Final = "asked to look at its nodes"
#: By the state that is left, the cause that ends it, unless a cancel does.
_ENDS_OF_WAITS: Final = {
    "scheduled": "due",
    "parked": "released from its line",
    "waiting": "its turn in the group",
    "dead": "redriven",
}
#: By the cause of the wait, where it has a cause of its own.
_ENDS_OF_LINES: Final = {"pause": "released from its pause", "breaker": "released by its breaker"}


@dataclass(frozen=True, slots=True)
class Expected:
    """An entry. None for what the documents do not tell."""

    state: State | None
    causes: frozenset[str]
    at_ms: int | None = None
    attempt: int | None = None


class HistoryChecks:
    """Watches the jobs table of one world."""

    def __init__(self, world: World) -> None:
        #: By key, the number of each run that began, in order.
        self._begun: dict[str, list[int]] = defaultdict(list)
        checks = (
            self.each_transition_is_recorded,
            self.runs_have_their_numbers,
            self.costs_one_unit,
            self.tracebacks_go,
        )
        watch_jobs(world, changed=checks, inserted=self.a_new_job_has_no_past)

    def a_new_job_has_no_past(self, key: str, after: Item) -> None:
        self._begun[key] = []
        begun = [entry.split(" ")[-1].replace("-", "cancelled") for entry in _entries(after)]
        # The node of a flow that has no job.
        marked = [mark_of(after) or "cancelled"] if state_of(after) is State.CANCELLED else []
        require(begun == marked, _RECORDED, f"a new job has {_entries(after)}", key)
        self.costs_one_unit(key, after, after)

    def each_transition_is_recorded(self, key: str, before: Item, after: Item) -> None:
        was, now = _entries(before), _entries(after)
        expected = _expected(before, after)
        if len(expected) == 1 and "redriven" in expected[0].causes and " cancel requested" in "".join(now[-2:-1]):
            # Only an operator who has read the death knows the request.
            asked_ms = number_of(before, "cancel_requested_at")
            expected = [Expected(State.RUNNING, frozenset({"cancel requested"}), asked_ms), *expected]
        kept, new = (now[: -len(expected)], now[-len(expected) :]) if expected else (now, [])
        if run_ended(before, after):
            least = _LEAST_KEPT_AFTER_FAILURE if {"errors", "redrives"} & after.keys() else _LEAST_KEPT
            enough = len(now) >= min(len(was) + 1, least)
            require(enough and was[len(was) - len(kept) :] == kept, _RECORDED, f"{was} became {now}", key)
            bounded = len(now) <= _MOST_KEPT and (len(now) <= least or _units(after) == _units(after, "history"))
            # A claim whose response was lost is taken back without knowledge of the document.
            unread = "claim unanswered" in now[-1]
            require(bounded or unread, "the history takes no write unit of its own", f"{len(now)} entries", key)
        else:
            require(kept == was, _RECORDED, f"{was} became {now}", key)
        fits = len(new) == len(expected) and all(map(_fits, new, expected))
        require(fits, _RECORDED, f"{new} for {expected}", key)

    def runs_have_their_numbers(self, key: str, before: Item, after: Item) -> None:
        if text_of(after, "owner") and text_of(after, "owner") != text_of(before, "owner"):
            self._begun[key].append(number_of(after, "attempt"))
        if "history" not in after:
            return
        numbered = with_attempts(transitions(after["history"]), attempt=number_of(after, "attempt"))
        shown = [entry.attempt for entry in numbered if entry.cause == "claimed"]
        begun = self._begun[key][len(self._begun[key]) - len(shown) :]
        require(shown == begun, "the history numbers the runs", f"{shown}, not {begun}", key)

    def costs_one_unit(self, key: str, _before: Item, after: Item) -> None:
        """A job that succeeds at its first attempt, at each of its three writes."""
        plain = number_of(after, "generation") == 1 and not _MORE & after.keys() and len(_entries(after)) <= 2
        if plain and len(text_of(after, "result")) <= _LARGEST_RESULT_BYTES:
            size = _size_bytes(after)
            require(size <= _UNIT_BYTES, "a job that succeeds at once costs one write unit each time", f"{size} B", key)

    def tracebacks_go(self, key: str, _before: Item, after: Item) -> None:
        """One traceback stays, with the last error, until the job succeeds."""
        errors = [error["M"] for error in after.get("errors", {"L": []})["L"]]
        gone = errors if state_of(after) is State.SUCCEEDED else errors[:-1]
        left = [error for error in gone if "traceback" in error]
        require(not left, "only the last error has a traceback", f"{len(left)} others have one", key)


def _entries(item: Item) -> list[str]:
    return [entry["S"] for entry in item.get("history", {"L": []})["L"]]


def _units(item: Item, without: str = "") -> int:
    return -(-_size_bytes({name: value for name, value in item.items() if name != without}) // _UNIT_BYTES)


def _size_bytes(item: Item) -> int:
    """Return the size that DynamoDB charges.

    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/CapacityUnitCalculations.html
    """
    return sum(len(name.encode()) + _value_bytes(value) for name, value in item.items())


def _value_bytes(value: Item) -> int:
    if "S" in value:
        return len(value["S"].encode())
    if "N" in value:
        return (len(value["N"].strip("0")) + 1) // 2 + 1
    if "L" in value:
        return 3 + len(value["L"]) + sum(map(_value_bytes, value["L"]))
    return 3 + len(value["M"]) + _size_bytes(value["M"]) if "M" in value else 1


def _fits(entry: str, expected: Expected) -> bool:
    at_ms, state, attempt, worker, *rest = entry.split(" ", 4)
    cause = rest[0] if rest else "claimed" if state == State.RUNNING else state
    return (
        expected.state == state
        and cause in expected.causes
        and (expected.at_ms is None or expected.at_ms == int(at_ms))
        and attempt == ("-" if expected.attempt is None else str(expected.attempt))
        and (worker != "-") is (cause == "claimed")
    )


def _expected(before: Item, after: Item) -> list[Expected]:
    """The entries that this write owes: one for each transition, and none for any other change."""
    was, now = state_of(before), state_of(after)
    if text_of(after, "owner") and text_of(after, "owner") != text_of(before, "owner"):
        return [Expected(now, frozenset({"claimed"}), number_of(after, "claimed_at"))]
    if run_ended(before, after):
        return [_end_of_run(before, after)]
    if number_of(after, "nudges") > number_of(before, "nudges"):
        return [_nudge(before, after)]
    if before.get("signals") != after.get("signals") and not payload_edited(before, after):
        return _signalled(before, after)
    if was is now:
        # A flow was about to look since its wait is over.
        asked = before.get("looks") != after.get("looks") and before["generation"] != after["generation"]
        return [Expected(now, frozenset({_LOOK}))] if asked else []
    at_ms = None
    if now is State.CANCELLED:
        at_ms = number_of(after, "finished_at")
    elif was is State.DEAD:
        at_ms = number_of(after["redrives"]["L"][-1]["M"], "at")
    cause = "moved" if joined(before, after) else _why_moved(before, after)
    return [Expected(now, frozenset({cause}), at_ms)]


def _why_moved(before: Item, after: Item) -> str:
    now = state_of(after)
    if now is State.CANCELLED:
        return "cancelled"
    if now is State.PARKED:
        return "paused by an operator"
    if state_of(before) is State.DEAD and "edited" in maps_of(after, "redrives")[-1]:
        return "redriven with another payload"
    if waits_alone(before):
        return "no signal until its timeout" if before.get("looks") == after.get("looks") else _LOOK
    cause = _ENDS_OF_WAITS.get(str(state_of(before)), "")
    if state_of(before) is State.PARKED:
        return _ENDS_OF_LINES.get(before["wait"]["M"]["cause"]["S"], cause)
    return cause


def _signalled(before: Item, after: Item) -> list[Expected]:
    """A signal that is kept for later leaves no entry."""
    if number_of(after, "generation") == number_of(before, "generation"):
        return []
    last = maps_of(after, "signals")[-1]
    return [Expected(state_of(after), frozenset({f"signal {text_of(last, 'name')}"}), number_of(last, "at"))]


def _nudge(before: Item, after: Item) -> Expected:
    state, at_ms = state_of(after), number_of(after, "nudged_at")
    if state_of(before) is State.RUNNING:
        return Expected(state, frozenset({"run lost"}), at_ms)
    return Expected(state, frozenset({"undeliverable" if state is State.DEAD else "nudged"}), at_ms)


def _end_of_run(before: Item, after: Item) -> Expected:
    """A settle, a release, or a claim that was taken back because its response was lost."""
    state, attempt = state_of(after), number_of(before, "attempt")
    back = number_of(after, "attempt") - attempt == -1
    ended_ms = number_of(after, "finished_at") if "finished_at" in after else None
    if number_of(after, "hops") > number_of(before, "hops"):
        waits = {f"waits: {text_of(map_of(after, 'awaited'), 'name')}"}
        asked = waits if wait_began(before, after) else {"snoozed", "continued"}
        return Expected(state, frozenset(asked), None, attempt)
    if state is State.RETRYING and back:
        counted = number_of(after, "releases") > number_of(before, "releases")
        cause = "conflict" if counted else "claim unanswered"
        return Expected(state, frozenset({cause}), None, attempt if counted else None)
    if "holds" in after:
        return Expected(state, frozenset({f"held: {text_of(after, 'hold_cause')}"}), None, attempt)
    if state in {State.SUCCEEDED, State.CANCELLED, State.EXPIRED, State.DEAD}:
        return Expected(state, frozenset({text_of(after, "death") or str(state)}), ended_ms, attempt)
    error = after["errors"]["L"][-1]["M"]
    return Expected(state, frozenset({text_of(error, "error_class")}), number_of(error, "at"), attempt)
