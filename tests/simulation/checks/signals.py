"""Checks of signals: each takes effect once, none is lost, and no job waits beyond its timeout."""

import json
from dataclasses import dataclass
from typing import Any, Final

from tests.simulation.checks.table_watch import watch_jobs
from tests.simulation.checks.violation import (
    Item,
    map_of,
    maps_of,
    number_of,
    payload_edited,
    require,
    run_ended,
    state_of,
    text_of,
    unused_signals,
    wait_began,
    waits_alone,
)
from tests.simulation.world.faults import Fault
from tests.simulation.world.lambda_environments import FAR_OFF_MS, LARGEST_SKEW_MS
from tests.simulation.world.world import World
from tidemill.domain.batches.batches import CLOSED
from tidemill.domain.batches.composite_cancels import CANCELLED
from tidemill.domain.states import TERMINAL, State
from tidemill.names import BATCH_TYPE

_ONCE: Final = "a signal takes effect once"
_KEPT: Final = "an early signal is not lost"
_WAKES: Final = "a signal starts the job that waits for it"
_TOLD: Final = "a run knows its signals"
#: How often a job may ask for one input.
_MOST_WAITS: Final = 2


@dataclass(frozen=True, slots=True)
class Sent:
    """A signal that was accepted."""

    key: str
    name: str
    data: Any


@dataclass(frozen=True, slots=True)
class Claimed:
    """The signals of a document that was claimed, and what the job had waited for."""

    by: str
    attempt: int
    signals: dict[str, Any]
    waited_for: str | None


class SignalChecks:
    """Watches the jobs table of one world, and runs at its end."""

    def __init__(self, world: World) -> None:
        self._world = world
        #: By owner token, what was claimed.
        self._claimed: dict[str, Claimed] = {}
        #: The signals whose answer was 200.
        self.accepted: list[Sent] = []
        checks = (
            self.claims_are_known,
            self.signals_only_come,
            self.a_late_signal_changes_nothing,
            self.a_signal_wakes,
            self.waits_begin_without_their_signal,
            self.waits_end_in_time,
            self.inputs_are_bounded,
        )
        watch_jobs(world, changed=checks)

    def claims_are_known(self, _key: str, before: Item, after: Item) -> None:
        if text_of(after, "owner") not in {"", text_of(before, "owner")}:
            task = self._world.scheduler.current
            self._claimed[text_of(after, "owner")] = Claimed(
                by=task.process.name if task else "",
                attempt=number_of(after, "attempt"),
                signals=unused_signals(after),
                waited_for=text_of(map_of(after, "awaited"), "name") or None,
            )

    def signals_only_come(self, key: str, before: Item, after: Item) -> None:
        """One at a time, and one value of a name at a time. Only the run that has seen one marks it as used."""
        was, now = maps_of(before, "signals"), maps_of(after, "signals")
        if payload_edited(before, after):
            require(not now, "another payload drops the signals", f"{now} are left", key)
            return
        same = [{**one, "used": None} for one in now[: len(was)]] == [{**one, "used": None} for one in was]
        require(same and len(now) - len(was) in {0, 1}, _ONCE, f"{was} became {now}", key)
        names = [text_of(one, "name") for one in now if "used" not in one]
        require(len(names) == len(set(names)), _ONCE, f"two values of one name: {now}", key)
        marked = [one for one, earlier in zip(now, was, strict=False) if one.keys() != earlier.keys()]
        claimed = self._claimed.get(text_of(before, "owner"))
        used = {text_of(one, "name") for one in marked}
        asked = {text_of(map_of(after, "awaited"), "name")}
        seen = {claimed.waited_for} & claimed.signals.keys() if claimed else set()
        allowed = not used or (run_ended(before, after) and used == asked and (used <= seen or self._unsure))
        require(allowed, _ONCE, f"{used} are used, of {seen}", key)

    def a_late_signal_changes_nothing(self, key: str, before: Item, after: Item) -> None:
        """But a batch that died open keeps its close, and nothing else of it changes."""
        changed = before.get("signals") != after.get("signals") and not payload_edited(before, after)
        late = state_of(before) in TERMINAL and changed
        closed = _died_open(before) and after == {**before, "signals": after.get("signals")}
        closed = closed and text_of(maps_of(after, "signals")[-1], "name") == CLOSED
        require(closed or not late, "a late signal changes nothing", f"a {state_of(before)} job got one", key)

    def a_signal_wakes(self, key: str, before: Item, after: Item) -> None:
        """At once, if the job is parked for it or at the end of that wait. Any other job stays as it is.

        A pause that has ended leaves its line in the job, which is queued for the end of its wait again.
        """
        was, now = maps_of(before, "signals"), maps_of(after, "signals")
        if len(now) <= len(was):
            return
        awaited, last = map_of(before, "awaited"), now[-1]
        waits = text_of(awaited, "name") == text_of(last, "name") and before.get("due") == awaited["until"]
        free = text_of(map_of(before, "wait"), "cause") in {"", "pause"} and "holds" not in before
        at_rest = state_of(before) is State.QUEUED and free
        waits = waits and (waits_alone(before) or at_rest)
        step = number_of(after, "generation") - number_of(before, "generation")
        woken = step == 1 and state_of(after) is State.QUEUED and after["due"] == last["at"]
        same = step == 0 and state_of(after) is state_of(before) and after.get("due") == before.get("due")
        require(woken if waits else same, _WAKES, f"{state_of(before)} -> {state_of(after)} by {last}", key)

    def waits_begin_without_their_signal(self, key: str, before: Item, after: Item) -> None:
        """A signal that came during the run starts the job again. One that the run has seen is used, or given up."""
        if not run_ended(before, after):
            return
        if not wait_began(before, after):
            self._goes_on_without_a_wait(key, before, after)
            return
        name = text_of(map_of(after, "awaited"), "name")
        claimed = self._claimed[text_of(before, "owner")]
        came = name in unused_signals(before) and (name not in claimed.signals or claimed.waited_for != name)
        if self._unsure:
            # It may have seen a signal that came just after its claim.
            came = came and name in unused_signals(after)
        soon = number_of(after, "due") <= self._world.scheduler.now_ms + self._skew_ms
        require(not came or (state_of(after) is State.QUEUED and soon), _KEPT, f"it waits for {name}", key)
        again = name in unused_signals(after) and not came
        require(not again, _ONCE, f"it waits for {name}, which it has", key)
        at_end = came or after["due"] == map_of(after, "awaited")["until"]
        require(at_end, "no waiter sleeps beyond its timeout", f"due {after['due']}", key)

    def _goes_on_without_a_wait(self, key: str, before: Item, after: Item) -> None:
        """Only waits in a row count, and a run that failed does not end the row."""
        went_on = number_of(after, "hops") > number_of(before, "hops")
        ended = "awaited" not in after or map_of(after, "awaited").get("times") == {"N": "0"}
        same = before.get("awaited") == after.get("awaited")
        require(ended if went_on else same, "only waits in a row count", f"awaited: {after.get('awaited')}", key)

    def waits_end_in_time(self, key: str, before: Item, after: Item) -> None:
        """Wake queues it before its time comes, and leaves the time as it is."""
        woken = waits_alone(before) and state_of(after) is State.QUEUED
        if not woken or any(before.get(name) != after.get(name) for name in ("signals", "looks")):
            return
        check, until_ms = "no waiter sleeps beyond its timeout", number_of(before, "due")
        late_ms = self._world.scheduler.now_ms - until_ms
        calm = not any(self._world.faults.rates.values()) and not self._world.rollout.planned
        require(late_ms <= 0 or not calm, check, f"woken {late_ms} ms late", key)
        require(number_of(after, "due") >= until_ms, check, f"due {after['due']}, not {until_ms}", key)

    def inputs_are_bounded(self, key: str, before: Item, after: Item) -> None:
        awaited = map_of(after, "awaited")
        times = number_of(awaited, "times") or 1
        asks = text_of(awaited, "cause") == "input"
        require(not asks or times <= _MOST_WAITS, "a missing input is bounded", f"it waits {times} times", key)
        died = text_of(after, "death") == "missing input" and state_of(before) is State.RUNNING
        require(not died or (asks and times == _MOST_WAITS), "a missing input is bounded", f"dead after {times}", key)
        claimed = self._claimed.get(text_of(before, "owner"))
        name = text_of(awaited, "name")
        came = died and claimed is not None and name in unused_signals(before) and name not in claimed.signals
        # If the answer of the claim was lost, the run may have seen a signal that came just after it.
        require(not came or self._unsure, _KEPT, f"dead for lack of {name}, which came during its last run", key)

    def at_end(self) -> None:
        """Raises `Violation`."""
        for run in self._world.runs:
            claimed = self._claimed.get(run.owner)
            # Another worker may have taken the job over before the handler began.
            if claimed and (run.by, run.attempt) == (claimed.by, claimed.attempt):
                later = self._unsure and claimed.signals.keys() <= run.signals.keys()
                fits = run.signals == claimed.signals or later
                fits = fits and run.waited_for == claimed.waited_for
                fits = fits and run.timed_out is (run.waited_for not in {None, *run.signals})
                require(fits, _TOLD, f"{run.signals} after {run.waited_for}, not {claimed}", run.key)
        for sent in self.accepted:
            changes = [change.after or {} for change in self._world.trace.changes if change.key == sent.key]
            kept = any(
                text_of(one, "name") == sent.name and json.loads(text_of(one, "data")) == sent.data
                for item in changes
                for one in maps_of(item, "signals")
            )
            require(kept, _KEPT, f"{sent.name} was accepted", sent.key)

    @property
    def _unsure(self) -> bool:
        """Whether a claim whose answer was lost may show a document that is newer than the claim."""
        return any(self._world.faults.counted[fault] for fault in (Fault.ANSWER_LOST, Fault.UNANSWERED))

    @property
    def _skew_ms(self) -> int:
        return FAR_OFF_MS if self._world.faults.counted[Fault.CLOCK_FAR_OFF] else LARGEST_SKEW_MS


def _died_open(item: Item) -> bool:
    """Whether it is a batch that died before it was closed or cancelled: its redrive finds a close that comes then."""
    names = {text_of(one, "name") for one in maps_of(item, "signals")}
    batch = text_of(item, "type") == BATCH_TYPE and not names & {CLOSED, CANCELLED}
    return batch and state_of(item) is State.DEAD


__all__ = ["Sent", "SignalChecks"]
