"""Checks of the fields of a document: times, counts and reasons, which users read and later writes build upon."""

import json
import math
from collections import Counter
from typing import Any, Final
from zlib import crc32

from tests.simulation.checks.attempts import NO_RUN
from tests.simulation.checks.table_watch import watch_jobs
from tests.simulation.checks.violation import (
    Item,
    errors_of,
    has_expired,
    holds_by_cause,
    joined,
    number_of,
    replay_of,
    require,
    run_ended,
    state_of,
    text_of,
    waits_alone,
)
from tests.simulation.deployment import RETENTION_DAYS
from tests.simulation.world.code_versions import INDEX_SHARDS, job_type
from tests.simulation.world.faults import Fault
from tests.simulation.world.lambda_environments import FAR_OFF_MS, LARGEST_SKEW_MS
from tests.simulation.world.world import World
from tidemill.application.attempt.attempt_report import Ending
from tidemill.application.dispatch.owed import Kind, Work
from tidemill.domain.attempt.outcomes import ERRORS_KEPT, LONGEST_MESSAGE_CHARACTERS
from tidemill.domain.history import Why
from tidemill.domain.job import CRASHED, DeathReason
from tidemill.domain.states import TERMINAL, State
from tidemill.dynamodb.dispatch.owed_items import owed_key
from tidemill.dynamodb.groups.group_items import POSITION_PREFIX, head_key
from tidemill.dynamodb.history_entries import transitions
from tidemill.names import JOB_KEY, LISTING_KEY, WAKE_WINDOW_SECONDS

_DAY_MS: Final = 86_400_000
#: Shortest time between two nudges; number of nudges and lateness after which a job dies undeliverable.
_NUDGES_APART_MS: Final = 60_000
#: After these, a live job has a message in a DLQ.
_INTO_DLQ: Final = (Fault.MOVED_TO_DLQ, Fault.DLQ_MOVED_NATIVELY, Fault.RECEIVES_WASTED)
_MOST_NUDGES: Final = 6
#: An invocation of wake or reconcile, delayed.
_OWED_WORK_TAKES_MS: Final = 20 * 60_000
_GIVEN_UP_AFTER_MS: Final = 7 * _DAY_MS
#: A flow ends within this.
_LONGEST_FLOW_SECONDS: Final = 90 * 86_400
#: A store outage or a conflict counts as a failure only after so many, when the job itself may be the cause.
#: So does another version of the code. Holds by another cause count for neither.
_FAILURES_AFTER: Final = {
    "StoreUnavailableError": ("outage", 20),
    "TransactionConflictError": ("releases", 8),
    "UnknownJobTypeError": ("version", 20),
    "InvalidPayloadError": ("version", 20),
}
#: Causes of holds whose count goes on after a hold by another cause, since there is a most of them.
_BOUNDED: Final = frozenset({"outage", "version", "suspect"})


class DocumentFieldChecks:
    """Watches the jobs table of one world, and runs at its end."""

    def __init__(self, world: World) -> None:
        self._world = world
        #: By token, the write that ended a run: the document before and after.
        self._ends: dict[str, tuple[Item, Item]] = {}
        #: The number of jobs under each key. The DLQ messages of an earlier one may remain.
        self._lives: Counter[str] = Counter()
        #: By key, the attempt that the last of some holds in a row gave back.
        self._held_attempts: dict[str, int] = {}
        checks = (
            self.jobs_stay_listed,
            self.no_run_begins_before_its_time,
            self.no_job_is_woken_before_its_time,
            self.nudges_are_counted,
            self.holds_are_counted,
            self.attempts_record_their_errors,
            self.progress_is_what_was_reported,
            self.only_lost_jobs_die_undeliverable,
            self.redrives_are_audited,
            self.terminal_jobs_are_kept,
        )
        watch_jobs(world, changed=checks, inserted=self.jobs_are_listed)

    def jobs_are_listed(self, key: str, after: Item) -> None:
        self._lives[key] += 1
        tenant, _, job_id = key.rpartition("#")
        number = crc32(job_id.encode())
        # Each version of the code spreads jobs over a number of partitions of its own.
        listed = text_of(after, LISTING_KEY) in {f"{tenant}#{number % shards}" for shards in INDEX_SHARDS}
        require(listed, "jobs are listed", "no listing will show it", key)
        own = "parent" not in after or "tags" not in after or replay_of(after) is not None
        require(own, "a follow-up has its own tags", f"tags: {after.get('tags')}", key)
        lasts = job_type(text_of(after, "type")).retention
        kept = number_of(after, "retention") == (math.ceil(lasts.total_seconds()) if lasts else 0)
        # The document of a node lasts as long as its flow, which may look at it until its own end.
        kept = kept or ("flow" in after and number_of(after, "retention") >= _LONGEST_FLOW_SECONDS)
        require(kept, "terminal jobs are kept for their retention", f"retention: {after.get('retention')}", key)

    def jobs_stay_listed(self, key: str, before: Item, after: Item) -> None:
        """The index orders jobs by the time of submission, so no write may change it."""
        require(after.get(LISTING_KEY) == before.get(LISTING_KEY), "jobs are listed", "its index entry changed", key)

    def no_run_begins_before_its_time(self, key: str, before: Item, after: Item) -> None:
        if not (owner := text_of(after, "owner")) or owner == text_of(before, "owner"):
            return
        due_ms, claimed_ms = number_of(before, "due"), number_of(after, "claimed_at")
        in_time = due_ms <= min(claimed_ms, self._now_ms + self._skew_ms) and claimed_ms <= number_of(after, "due")
        in_time = in_time and number_of(before, "run_at") <= claimed_ms
        require(in_time, "no run begins before its due time", f"due {due_ms}, claimed {claimed_ms}", key)
        recorded = number_of(after, "ready_at") == due_ms and "nudges" not in after
        require(
            recorded,
            "a claim records what it claimed",
            f"ready {after.get('ready_at')}, nudges {after.get('nudges')}",
            key,
        )

    def no_job_is_woken_before_its_time(self, key: str, before: Item, after: Item) -> None:
        signalled = before.get("signals") != after.get("signals")
        timed = state_of(before) is State.SCHEDULED or (waits_alone(before) and not signalled)
        # A submission may bring it forward. `BurstChecks` looks at its time.
        timed = timed and not joined(before, after)
        if timed and state_of(after) is State.QUEUED:
            early_ms = number_of(after, "due") - self._now_ms - WAKE_WINDOW_SECONDS * 1000
            require(early_ms <= self._skew_ms, "no job is woken before its due time", f"{early_ms} ms early", key)

    def nudges_are_counted(self, key: str, before: Item, after: Item) -> None:
        """Nudges are counted one at a time, and each records its time."""
        check, last_ms = "nudges are counted", number_of(before, "nudged_at")
        if "nudged_at" not in after or number_of(after, "nudged_at") == last_ms:
            return
        step = number_of(after, "nudges") - number_of(before, "nudges")
        if not step:
            require(self._owed(key), "only owed messages are sent again", "publish had no trouble with it", key)
            return
        require(step == 1, check, f"the count moved by {step}", key)
        apart_ms = number_of(after, "nudged_at") - max(last_ms, number_of(before, "due"))
        # Wake takes back a lost run whose message is owed. The sweep of a DLQ does not wait for long, either.
        soon = (state_of(before) is State.RUNNING and self._owed(key)) or self._swept(key)
        least_ms = self._least_between_nudges_ms(number_of(before, "nudges"), soon=soon)
        require(apart_ms >= least_ms, check, f"{apart_ms} ms after the one before, not {least_ms}", key)
        taken_back = state_of(before) is not State.RUNNING or state_of(after) is State.RETRYING
        require(taken_back, check, f"{state_of(before)} -> {state_of(after)}", key)

    def _swept(self, key: str) -> bool:
        return self._lives[key] > 1 or any(self._world.faults.counted[fault] for fault in _INTO_DLQ)

    def _owed(self, key: str) -> bool:
        """Whether the message of the job is owed, or was until just now."""
        tenant, _, job_id = key.rpartition("#")
        owed = owed_key(Work(kind=Kind.DISPATCH, tenant=tenant, name=job_id))[JOB_KEY]["S"]
        # Another one may have read it before it was done.
        since_ms = self._now_ms - _OWED_WORK_TAKES_MS
        return (owed,) in self._world.jobs.items or self._world.trace.changed_since(owed, since_ms)

    def _least_between_nudges_ms(self, nudges: int, *, soon: bool) -> int:
        """The interval doubles with each nudge, up to a day."""
        first_ms = _NUDGES_APART_MS if soon else self._world.deployment.stage.reconcile_limit_seconds * 1000
        return max(first_ms, min(first_ms << min(nudges, _MOST_NUDGES), _DAY_MS))

    def holds_are_counted(self, key: str, before: Item, after: Item) -> None:
        if not self._ended(before, after):
            return
        if self._given_back(before, after):
            # A counted release waits for a while. A claim taken back because its response was lost does not wait.
            soon = "releases" in after or number_of(after, "due") <= self._now_ms + self._skew_ms
            require(soon, "a claim taken back is free at once", f"due {after.get('due')}", key)
            return
        held = _step("attempt", before, after) == -1 and not _step("hops", before, after)
        cause, attempt = text_of(after, "hold_cause"), number_of(before, "attempt")
        # The attempt is given back, so a claim with a higher one came after a run that was lost.
        in_row = self._held_attempts.get(key, attempt) >= attempt
        was = holds_by_cause(before) if in_row else {}
        wanted = {other: times for other, times in was.items() if other in _BOUNDED} | {cause: was.get(cause, 0) + 1}
        if held:
            self._held_attempts[key] = attempt
        else:
            self._held_attempts.pop(key, None)
            wanted = {}
        counted = holds_by_cause(after)
        require(counted == wanted, "holds are counted", f"{counted}, not {wanted}", key)
        named = ("hold_cause" in after) is ("holds" in after) is held
        require(named, "holds are counted", f"{after.get('holds')} by {after.get('hold_cause')}", key)

    def attempts_record_their_errors(self, key: str, before: Item, after: Item) -> None:
        check, was, now = "failed attempts record their errors", errors_of(before), errors_of(after)
        if now == was:
            return
        last = now[-1]
        new = next((count for count in range(1, len(now) + 1) if [*was, *now[-count:]][-ERRORS_KEPT:] == now), 0)
        require(new > 0, check, "earlier errors are gone", key)
        require(len(text_of(last, "message")) <= LONGEST_MESSAGE_CHARACTERS, check, "a message is too long", key)
        if text_of(last, "error_class") == CRASHED:
            return  # `CrashChecks` knows whether the run crashed
        own = number_of(last, "attempt") == number_of(before, "attempt")
        require(own, check, f"attempt {number_of(before, 'attempt')} left {last}", key)
        again = state_of(after) in TERMINAL or number_of(last, "next_due") == number_of(after, "due")
        require(again, check, f"{last} does not record when it is retried", key)
        name, least = _FAILURES_AFTER.get(text_of(last, "error_class"), ("attempt", 0))
        times = number_of(before, name) or holds_by_cause(before).get(name, 0)
        unpaid = "outages, conflicts and other versions cost no attempt"
        require(times >= least, unpaid, f"{last} after {times} {name}", key)

    def progress_is_what_was_reported(self, key: str, before: Item, after: Item) -> None:
        if text_of(after, "type") == "sim.continue" and _step("hops", before, after) == 1:
            page, last = text_of(after, "checkpoint"), text_of(before, "checkpoint")
            require(
                page == str(int(last or 0) + 1),
                "progress is what the handler reported",
                f"page {last}, then {page}",
                key,
            )
        if text_of(after, "type") == "sim.steps" and "checkpoint" in after:
            done, total = number_of(after, "progress_done"), number_of(after, "progress_total")
            fits = text_of(after, "checkpoint") == str(done) and done <= total and "checkpoint_at" in after
            require(
                fits,
                "progress is what the handler reported",
                f"{done} of {total}, at {text_of(after, 'checkpoint')}",
                key,
            )
            same_run, earlier = text_of(before, "owner") == text_of(after, "owner"), number_of(before, "progress_done")
            require(not same_run or done >= earlier, "a later checkpoint stays", f"{earlier}, then {done}", key)

    def only_lost_jobs_die_undeliverable(self, key: str, before: Item, after: Item) -> None:
        check = "only lost jobs die undeliverable"
        nudges = number_of(before, "nudges")
        if number_of(after, "nudges") > nudges and state_of(before) is not State.RUNNING:
            given_up = text_of(after, "death") == DeathReason.UNDELIVERABLE
            # By the clock of the process that decided it, which may have written it much later.
            spare_ms = number_of(after, "nudged_at") - number_of(before, "due") - _GIVEN_UP_AFTER_MS
            in_vain = nudges >= _MOST_NUDGES and spare_ms >= 0
            fits = given_up is in_vain
            require(fits, check, f"{state_of(after)} after {nudges} nudges, {spare_ms} ms beyond the limit", key)
        reason = ("death" in after) is (state_of(after) is State.DEAD)
        require(reason, "every dead job has a reason", f"{state_of(after)}: {text_of(after, 'death')}", key)

    def redrives_are_audited(self, key: str, before: Item, after: Item) -> None:
        if state_of(before) is not State.DEAD or state_of(after) in TERMINAL:
            return
        was, now = _list(before, "redrives"), _list(after, "redrives")
        audited = bool(now) and now[:-1] == was[1 - ERRORS_KEPT :] and now[-1]["M"].get("death") == before.get("death")
        require(audited, "a redrive leaves an audit entry", f"{len(was)} entries became {len(now)}", key)
        gone = has_expired(before, self._now_ms, late_ms=-self._skew_ms - 1000)
        require(not gone, "an expired job is not redriven", "it was redriven", key)

    def terminal_jobs_are_kept(self, key: str, before: Item, after: Item) -> None:
        check = "terminal jobs are kept for their retention"
        if state_of(after) not in TERMINAL or state_of(before) is state_of(after):
            return
        finished_ms = number_of(after, "finished_at")
        # A delayed process ends the job minutes later, dated from when it began to. An operator may have begun before
        # another run claimed the job.
        began_ms = number_of(before, "claimed_at" if state_of(before) is State.RUNNING else "created_at")
        # The submission of its correction may have begun before the job was there.
        since_ms = 0 if "superseded_by" in after else began_ms - 2 * self._skew_ms
        require(since_ms <= finished_ms <= self._now_ms + self._skew_ms, check, f"finished at {finished_ms}", key)
        if state_of(after) is State.DEAD and "group" in after and after.get("blocks") == {"BOOL": True}:
            require("expires_at" not in after, check, "it blocks its group, and has a TTL", key)
            return
        kept_ms = number_of(after, "retention") * 1000 or RETENTION_DAYS * _DAY_MS
        until_ms = max(finished_ms + kept_ms, number_of(after, "unique_until"))
        late_ms = number_of(after, "expires_at") * 1000 - until_ms
        require(0 <= late_ms < 1000, check, f"expires {late_ms} ms after its retention", key)

    def at_end(self) -> None:
        """Raises `Violation`."""
        check = "documents match the reports"
        for _, by, report in self._world.reports:
            if report.job and report.job.lease.owner in self._ends and report.ending not in NO_RUN:
                before, after = self._ends[report.job.lease.owner]
                key = f"{report.job.tenant}#{report.job.id}"
                require(_matches(report.ending, before, after), check, f"{by}: {report.ending}", key)
        self._places_go_with_their_turn()

    def _places_go_with_their_turn(self) -> None:
        items = {key[0]: item for key, item in self._world.jobs.items.items()}
        for name in items:
            if name.startswith(POSITION_PREFIX):
                tenant, group, sequence = json.loads(name.removeprefix(POSITION_PREFIX))
                head = items.get(head_key(tenant, group)[JOB_KEY]["S"])
                waits = head is not None and sequence > number_of(head, "sequence")
                require(
                    waits,
                    "places are deleted in their turn",
                    f"place {sequence} of group {group} remains",
                    f"{tenant}#",
                )

    def _ended(self, before: Item, after: Item) -> bool:
        """Whether this write ends the run that owned the job."""
        if not run_ended(before, after):
            return False
        self._ends[text_of(before, "owner")] = (before, after)
        return True

    @staticmethod
    def _given_back(before: Item, after: Item) -> bool:
        """Whether the run was undone, with no error recorded."""
        unchanged = _list(before, "errors") == _list(after, "errors")
        return state_of(after) is State.RETRYING and unchanged

    @property
    def _now_ms(self) -> int:
        return self._world.scheduler.now_ms

    @property
    def _skew_ms(self) -> int:
        """Largest clock skew in this world."""
        return FAR_OFF_MS if self._world.faults.counted[Fault.CLOCK_FAR_OFF] else LARGEST_SKEW_MS


def _matches(ending: Ending, before: Item, after: Item) -> bool:
    """Whether the document changed as this ending requires."""
    attempt, hops = _step("attempt", before, after), _step("hops", before, after)
    match ending:
        case Ending.SNOOZED | Ending.AWAITING:
            fits = (attempt, hops) == (-1, 1)
        case Ending.CONTINUED:
            fits = (number_of(after, "attempt"), hops) == (0, 1)
        case Ending.HELD:
            fits = (attempt, hops, "holds" in after) == (-1, 0, True)
        case Ending.PARKED:
            fits = (attempt, hops, state_of(after)) == (-1, 0, State.PARKED) and "wait" in after
        case Ending.RELEASED:
            # A claim that came too late, when the time of its attempt was up, is given back without a conflict.
            conflicts = 0 if transitions(after["history"])[-1].cause == Why.UNANSWERED else 1
            fits = (attempt, hops, _step("releases", before, after)) == (-1, 0, conflicts)
        case Ending.RETRYING:
            fits = (attempt, hops) == (0, 0) and _list(before, "errors") != _list(after, "errors")
        case Ending.SUCCEEDED | Ending.DEAD | Ending.CANCELLED:
            fits = attempt == 0 and state_of(after) == ending.value
        case _:
            fits = True
    return fits


def _step(name: str, before: Item, after: Item) -> int:
    return number_of(after, name) - number_of(before, name)


def _list(item: Item, name: str) -> list[Any]:
    found: list[Any] = item.get(name, {"L": []})["L"]
    return found


__all__ = ["DocumentFieldChecks"]
