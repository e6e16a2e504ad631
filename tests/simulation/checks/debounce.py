"""Checks of debounced jobs: no accepted submission is lost, each key has one job to come, and its times hold."""

import json
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any, Final

from tests.simulation.checks.table_watch import watch_jobs
from tests.simulation.checks.violation import (
    Item,
    has_expired,
    map_of,
    maps_of,
    number_of,
    require,
    require_in_task,
    state_of,
    text_of,
)
from tests.simulation.world.faults import Fault
from tests.simulation.world.lambda_environments import FAR_OFF_MS, LARGEST_SKEW_MS
from tests.simulation.world.world import World
from tidemill.domain.job import Job
from tidemill.domain.states import TERMINAL, State
from tidemill.domain.submission.submission import Submission
from tidemill.names import PAYLOADS_PREFIX

_RUNS: Final = "the payload of an accepted submission runs after its acceptance, or that of a later one"
_LAST: Final = "a run has the last payload that its job got"
_ONE: Final = "one job of a debounce key has not begun"
_QUIET: Final = "a job waits for the end of its debounce"
_UNTIL: Final = "a job is due by the end of its burst"
_COUNTED: Final = "the changes by later submissions are counted"
_HELD: Final = "a job that is held back keeps its time"
_MESSAGE: Final = "the message of a debounced job comes in time"
#: With all sends of a call.
_LONGEST_CALL_MS: Final = 10_000
_FEW: Final = "a burst does not send a message for each submission"
_USEFUL: Final = "a job is of use for as long as each of its submissions asks"
_BEGUN: Final = "a job that has begun takes no submission"
_TYPES: Final = frozenset({"sim.debounced", "sim.debounced-limited"})
_NEVER_RAN: Final = frozenset({State.CANCELLED, State.DEAD, State.EXPIRED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """A submission that was accepted. `asked_ms` is when its last try began."""

    number: int
    job: Job
    asked_ms: int
    asked: Submission


@dataclass(slots=True)
class _Written:
    """A payload that a submission wrote."""

    number: int
    at_ms: int


@dataclass(slots=True)
class _Seen:
    """One job."""

    name: str
    until_ms: int
    written: list[_Written] = field(default_factory=list)
    state: State | None = None
    claimed: bool = False


class BurstChecks:
    """Watches the jobs table and the runs of one world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._jobs: dict[str, _Seen] = {}
        self._answered: list[Answered] = []
        #: By key of the job, the submission whose payload each run had, and when it began.
        self._ran: dict[str, list[_Written]] = defaultdict(list)
        world.run_end_watchers.append(self._a_run_ends)
        watch_jobs(world, changed=[self.a_job_changes], inserted=self.a_job_is_made)

    def a_job_is_made(self, key: str, after: Item) -> None:
        if text_of(after, "type") not in _TYPES:
            return
        burst = map_of(after, "burst")
        name, until_ms = text_of(burst, "name"), number_of(burst, "until")
        for other, seen in self._jobs.items():
            item = self._world.jobs.items.get((other,))
            gone = item is None or has_expired(item, self._now_ms, late_ms=self._skew_ms)
            # A job that has got a signal takes no submission, so the next one has a job of its own.
            closed = seen.claimed or gone or seen.state in TERMINAL or maps_of(item or {}, "signals")
            waits = seen.name == name and not closed
            require(not waits, _ONE, f"{other} is {seen.state}", key)
        self._jobs[key] = _Seen(name, until_ms)
        self._note(key, after, replaced=True)

    def a_job_changes(self, key: str, before: Item, after: Item) -> None:
        if key not in self._jobs:
            return
        seen, was, burst = self._jobs[key], map_of(before, "burst"), map_of(after, "burst")
        replacements = number_of(burst, "replacements") - number_of(was, "replacements")
        moves = number_of(burst, "moves") - number_of(was, "moves")
        joined = text_of(was, "last") != text_of(burst, "last")
        require(number_of(burst, "until") == seen.until_ms, _UNTIL, "the end of the burst has moved", key)
        require(replacements in {0, 1} and moves in {0, 1}, _COUNTED, f"by {replacements} and {moves}", key)
        # Two submissions at once may ask for use without an end, and the second changes nothing more.
        other_use = number_of(before, "useful_until") != number_of(after, "useful_until") or "useful_until" not in after
        changes = bool(replacements or moves or (joined and other_use))
        require(joined is changes, _COUNTED, f"{replacements}, {moves}, joined: {joined}", key)
        if joined:
            require(moves == (before["due"] != after["due"]), _COUNTED, f"{moves} moves", key)
            first_ms = number_of(burst, "first_replaced_at")
            kept = number_of(was, "first_replaced_at") in {0, first_ms}
            require(kept and bool(first_ms) is ("replacements" in burst), _COUNTED, "the first replacement", key)
            waits = state_of(before) not in TERMINAL | {State.RUNNING} and not number_of(before, "attempt")
            require(waits, _BEGUN, f"it was {state_of(before)}, attempt {number_of(before, 'attempt')}", key)
            require(not maps_of(before, "signals"), _BEGUN, "it had got a signal", key)
            if moves:
                self._a_move(key, before, after)
        self._note(key, after, replaced=bool(replacements))

    def _a_move(self, key: str, before: Item, after: Item) -> None:
        due_ms, until_ms = number_of(after, "due"), self._jobs[key].until_ms
        was, burst = map_of(before, "burst"), map_of(after, "burst")
        require(due_ms <= until_ms, _UNTIL, f"due {due_ms}, until {until_ms}", key)
        held = "claimed_at" in before or state_of(before) not in {State.SCHEDULED, State.QUEUED}
        require(not held, _HELD, f"it was {state_of(before)}", key)
        first_ms = number_of(was, "first_moved_at")
        require(first_ms in {0, number_of(burst, "first_moved_at")}, _COUNTED, "the first move", key)
        # The message of the last dispatch has not come yet, and comes in time. Any other message must be sent anew.
        under_way = state_of(before) is state_of(after) is State.QUEUED
        sent_ms = number_of(was, "sent_for")
        anew = number_of(after, "generation") > number_of(before, "generation")
        # The submission looked at its clock before its call, which the SDK may have sent again.
        asked_ms = self._now_ms - self._skew_ms - _LONGEST_CALL_MS
        serves = under_way and asked_ms < sent_ms <= due_ms
        require(anew or serves, _MESSAGE, f"sent for {sent_ms}, due {due_ms}", key)
        plainly = under_way and sent_ms <= due_ms and sent_ms > self._now_ms + self._skew_ms
        require(not (anew and plainly), _FEW, f"sent for {sent_ms}, due {due_ms}", key)

    def _note(self, key: str, after: Item, *, replaced: bool) -> None:
        seen = self._jobs[key]
        seen.state, seen.claimed = state_of(after), "claimed_at" in after
        if replaced:
            seen.written.append(_Written(self._payload(key, after)["count"], self._now_ms))

    def accepted(self, answered: Answered) -> None:
        """From the caller."""
        self._answered.append(answered)
        job, asked = answered.job, answered.asked
        key = f"{job.tenant}#{job.id}"
        burst = job.burst
        if burst is None or asked.debounce is None:
            require_in_task(self._world.scheduler, False, _QUIET, "the job has no burst", key)
            return
        until_ms = round(burst.until.timestamp() * 1000)
        # A job that has ended has no time: the answer was lost, and the SDK's retry found its own write after the run.
        due_ms = round(job.due.timestamp() * 1000) if job.due else 0
        at_rest = job.state in TERMINAL | {State.PARKED}
        require_in_task(self._world.scheduler, bool(job.due) or at_rest, _QUIET, f"{job.state}, not due", key)
        quiet_ms = answered.asked_ms + round(asked.debounce.total_seconds() * 1000)
        to_move = job.state in {State.SCHEDULED, State.QUEUED} and job.lease.claimed_at is None
        if to_move and until_ms > self._now_ms + self._skew_ms:
            early = due_ms < min(until_ms, quiet_ms) - self._skew_ms
            require_in_task(self._world.scheduler, not early, _QUIET, f"due {due_ms}, quiet {quiet_ms}", key)
        longest_ms = round((asked.debounce_max or asked.debounce).total_seconds() * 1000) + 1000
        created_ms = round(job.created_at.timestamp() * 1000)
        require_in_task(self._world.scheduler, until_ms <= created_ms + longest_ms, _UNTIL, "too late an end", key)
        self._is_of_use(job, asked, answered.asked_ms, key)
        if asked.replace:
            written = [each.number for each in self._jobs[key].written]
            require_in_task(self._world.scheduler, answered.number in written, _RUNS, "its payload is lost", key)

    def _is_of_use(self, job: Job, asked: Submission, asked_ms: int, key: str) -> None:
        if job.lifetime.useful_until is None:
            return
        age = asked.max_age
        least_ms = None if age is None else asked_ms + round(age.total_seconds() * 1000) - self._skew_ms
        until_ms = round(job.lifetime.useful_until.timestamp() * 1000)
        lasts = least_ms is not None and until_ms >= least_ms
        require_in_task(self._world.scheduler, lasts, _USEFUL, f"until {until_ms}, asked for {least_ms}", key)

    def _a_run_ends(self, run: Any) -> None:
        if run.key not in self._jobs or run.submission is None:
            return
        self._ran[run.key].append(_Written(run.submission, run.began_ms))
        last = self._jobs[run.key].written[-1]
        require_in_task(
            self._world.scheduler,
            run.submission == last.number,
            _LAST,
            f"of submission {run.submission}, not {last.number}",
            run.key,
        )

    def at_end(self) -> None:
        """Raises `Violation`."""
        for key, seen in self._jobs.items():
            last = seen.written[-1]
            ran = any(run.number == last.number and run.at_ms >= last.at_ms for run in self._ran[key])
            require(
                ran or seen.state in _NEVER_RAN, _RUNS, f"submission {last.number} has not run; it is {seen.state}", key
            )
        for answered in self._answered:
            key = f"{answered.job.tenant}#{answered.job.id}"
            ran = any(run.at_ms >= answered.asked_ms for run in self._ran[key])
            require(
                ran or self._jobs[key].state in _NEVER_RAN, _RUNS, f"no run after submission {answered.number}", key
            )

    def _payload(self, key: str, item: Item) -> dict[str, Any]:
        if "payload" in item:
            return dict(json.loads(text_of(item, "payload")))
        location, (tenant, _, job_id) = text_of(item, "payload_at"), key.rpartition("#")
        apart = f"!payload#{json.dumps([tenant, job_id, location], separators=(',', ':'))}"
        if stored := self._world.jobs.items.get((apart,)):
            return dict(json.loads(text_of(stored, "payload")))
        token = location.partition("/")[2]
        return next(
            dict(json.loads(body))
            for (_, path), body in self._world.s3.objects.items()
            if path.startswith(PAYLOADS_PREFIX) and path.endswith(f"/{job_id}/{token}")
        )

    @property
    def _now_ms(self) -> int:
        return self._world.scheduler.now_ms

    @property
    def _skew_ms(self) -> int:
        return FAR_OFF_MS if self._world.faults.counted[Fault.CLOCK_FAR_OFF] else LARGEST_SKEW_MS


__all__ = ["Answered", "BurstChecks"]
