"""The promises, each a named check. Some look at every change of a document as it is made, the others at the end.

They read documents as DynamoDB holds them, so that no fault of our own code can hide behind our own decoder.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from typing import Any, Final

from shared.domain.states import TERMINAL, TRANSITIONS, State
from tests.simulation.jobs.observed import Observed
from tests.simulation.world.faults import Fault
from tests.simulation.world.lambdas import LARGEST_SKEW_MS
from tests.simulation.world.table import Record
from tests.simulation.world.world import World

Item = Mapping[str, Any]

_LIVE_WITH_DUE: Final = frozenset({State.QUEUED, State.RETRYING, State.SCHEDULED, State.RUNNING})
_IN_ATTENTION: Final = frozenset({State.SCHEDULED, State.DEAD})
_DAY_MS: Final = 86_400_000
_HOUR_MS: Final = 3_600_000
_LEGAL: Final = frozenset(
    (before, after) for moves in TRANSITIONS.values() for before, afters in moves.items() for after in afters
)
#: Types whose success writes an effect.
WITHOUT_EFFECT: Final = frozenset({"sim.plain", "sim.permanent", "sim.give-up"})


class Violation(AssertionError):  # noqa: N818 - a finding
    """A promise that was broken."""

    def __init__(self, check: str, what: str, about: str) -> None:
        super().__init__(f"{check}: {what}")
        self.check = check
        self.what = what
        #: Key of the job.
        self.about = about


class Checks:
    """The checks of one world. Make it before anything happens."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._claimed_by: dict[str, str] = {}
        self._ended: set[str] = set()
        self._inserted: Counter[str] = Counter()
        self._lives: dict[str, Item] = {}
        self._at_change: tuple[Callable[[str, Item | None, Item | None], None], ...] = (
            self.only_legal_transitions,
            self.generations_and_attempts_only_rise,
            self.only_the_owner_ends_a_run,
            self.leases_are_respected,
            self.only_the_ended_may_expire,
            self.due_says_when,
            self.attention_is_where_it_belongs,
            self.groups_keep_their_order,
            self.asked_to_end_is_not_revived,
        )
        world.jobs.watchers.append(self._changed)

    def _changed(self, record: Record) -> None:
        key = record.keys["pk"]["S"]
        image = record.after or record.before or {}
        if "state" not in image:
            return
        try:
            for check in self._at_change:
                check(key, record.before, record.after)
        except Violation as violation:
            self._world.scheduler.found = self._world.scheduler.found or violation
        if record.after is None:
            self._lives.pop(key, None)
        else:
            self._lives[key] = record.after

    # At every change.

    def only_legal_transitions(self, key: str, before: Item | None, after: Item | None) -> None:
        if after is None:
            legal = _state(before) in TERMINAL
            self._require(legal, "only legal transitions", f"a job that is {_state(before)} was deleted", key)
            return
        came_from = None if before is None or _expired(before, self._now_ms, late_ms=1000) else _state(before)
        if came_from is None:
            self._inserted[key] += 1
        legal = (came_from, _state(after)) in _LEGAL or (before is not None and (_state(before), _state(after)) in _LEGAL)
        self._require(legal, "only legal transitions", f"{came_from} -> {_state(after)}", key)

    def generations_and_attempts_only_rise(self, key: str, before: Item | None, after: Item | None) -> None:
        if before is None or after is None or after["created_at"] != before["created_at"]:
            return
        step = _number(after, "generation") - _number(before, "generation")
        self._require(step in {0, 1}, "generations only rise", f"generation moved by {step}", key)
        if _state(before) is not State.RUNNING and _state(after) is State.RUNNING:
            begun = _number(after, "attempt") - _number(before, "attempt")
            self._require(begun == 1, "attempts count runs", f"a claim moved the attempt by {begun}", key)
        again = _state(after) in {State.QUEUED, State.RETRYING, State.SCHEDULED}
        asks = again and _state(before) in {State.RUNNING, State.DEAD} and "nudges" not in after
        self._require(
            not asks or step == 1, "a new dispatch has a new generation", f"{_state(before)} -> {_state(after)}", key
        )

    def only_the_owner_ends_a_run(self, key: str, before: Item | None, after: Item | None) -> None:
        if after is None:
            return
        task = self._world.scheduler.current
        by = task.process.name if task else ""
        token, earlier = _text(after, "owner"), _text(before, "owner")
        if token and token != earlier:
            self._require(token not in self._claimed_by, "tokens are fresh", f"{token} was used before", key)
            self._claimed_by[token] = by
        if earlier and token != earlier and _text(after, "last_owner") == earlier:
            owner = self._claimed_by.get(earlier)
            # A transaction commits after its caller has been killed.
            self._require(
                not by or owner == by, "only the owner ends a run", f"{by} settled the run of {owner}", key
            )

    def leases_are_respected(self, key: str, before: Item | None, after: Item | None) -> None:
        """Whoever takes a job from a run must find its lease over, by any clock."""
        earlier = _text(before, "owner")
        if before is None or after is None or not earlier or _text(after, "owner") == earlier:
            return
        if _text(after, "last_owner") != earlier:
            early_ms = _number(before, "due") - self._now_ms
            self._require(
                early_ms <= LARGEST_SKEW_MS, "leases are respected", f"taken {early_ms} ms before its lease was over", key
            )

    def only_the_ended_may_expire(self, key: str, _before: Item | None, after: Item | None) -> None:
        bad = after is not None and "expires_at" in after and _state(after) not in TERMINAL
        self._require(not bad, "only the ended may expire", f"a {after and _state(after)} job has a TTL", key)

    def due_says_when(self, key: str, _before: Item | None, after: Item | None) -> None:
        if after is not None:
            fits = ("due" in after) is (_state(after) in _LIVE_WITH_DUE)
            self._require(fits, "due says when", f"a {_state(after)} job, due: {after.get('due')}", key)

    def attention_is_where_it_belongs(self, key: str, _before: Item | None, after: Item | None) -> None:
        if after is not None:
            fits = ("attention" in after) is (_state(after) in _IN_ATTENTION)
            self._require(fits, "scheduled and dead jobs are found", f"{_state(after)}: {after.get('attention')}", key)

    def groups_keep_their_order(self, key: str, before: Item | None, after: Item | None) -> None:
        """A run may begin only when all before it in its group have ended, and block it no longer."""
        if after is None or "group" not in after or _state(after) is not State.RUNNING or _same(before, after, "owner"):
            return
        for other, held in self._lives.items():
            if other == key or held.get("group") != after["group"] or _tenant(other) != _tenant(key):
                continue
            if "sequence" not in held or _number(held, "sequence") >= _number(after, "sequence"):
                self._require(
                    _state(held) is not State.RUNNING, "one of a group at a time", f"{other} runs as well", key
                )
                continue
            passed = _state(held) in TERMINAL and not (_state(held) is State.DEAD and "blocks" in held)
            passed = passed or _expired(held, self._now_ms, late_ms=LARGEST_SKEW_MS)
            self._require(passed, "groups keep their order", f"{other} before it is {_state(held)}", key)

    def asked_to_end_is_not_revived(self, key: str, before: Item | None, after: Item | None) -> None:
        if before is None or after is None or "cancel_requested_at" not in before:
            return
        settled = _text(before, "owner") and _text(after, "last_owner") == _text(before, "owner")
        bad = settled and _state(before) is State.RUNNING and _state(after) not in TERMINAL | {State.RUNNING}
        released = _number(after, "releases") > _number(before, "releases")
        self._require(not bad or released, "what was asked to end lives on", f"-> {_state(after)}", key)

    # At the end.

    def at_rest(self) -> bool:
        """Nothing that the quiet has to bring about is left."""
        if self._world.stream.behind:
            return False
        if any(queue.messages for queue in self._world.lanes.values()):
            return False
        return all(_state(item) in TERMINAL for item in self._jobs().values())

    def bound_ms(self) -> int:
        """How long the quiet may take, from the configuration: see docs/proof.md."""
        stage = self._world.deployment.stage
        visibility_seconds = max(lane.visibility_timeout_seconds for lane in stage.lanes)
        most_attempts, longest_backoff_seconds, most_jobs = 4, 2_000, 40
        lives_seconds = most_jobs * most_attempts * (visibility_seconds + longest_backoff_seconds)
        return 3 * _DAY_MS + (stage.reconcile_limit_seconds + lives_seconds) * 1000

    def at_end(self) -> None:
        for check in (
            self.every_job_ends_in_time,
            self.no_accepted_job_is_lost,
            self.one_key_is_one_job,
            self.effects_are_exactly_once,
            self.attempts_within_policy,
            self.tenants_are_apart,
            self.limits_hold,
            self.letters_and_the_dead_agree,
        ):
            check()

    def every_job_ends_in_time(self) -> None:
        for key, item in self._jobs().items():
            ended = _state(item) in TERMINAL
            self._require(ended, "every job ends in time", f"still {_state(item)} when all was quiet for long", key)

    def no_accepted_job_is_lost(self) -> None:
        for asked in self._world.asked:
            for job_id in asked.ids:
                key = f"{asked.tenant}#{job_id}"
                self._require(self._inserted[key] > 0, "no accepted job is lost", "there never was a document", key)

    def one_key_is_one_job(self) -> None:
        ids: dict[tuple[str, str], set[str]] = defaultdict(set)
        for asked in self._world.asked:
            if asked.submission.key:
                ids[asked.tenant, asked.submission.key].update(asked.ids)
        for (tenant, name), found in ids.items():
            self._require(len(found) <= 1, "one key is one job", f"{name} made {sorted(found)}", f"{tenant}#")

    def effects_are_exactly_once(self) -> None:
        effects = {key[0]: int(item["count"]["N"]) for key, item in self._world.effects.items.items()}
        wins = Counter(
            change.key
            for change in self._world.trace.changes
            if change.after and "state" in change.after and _state(change.after) is State.SUCCEEDED
            if not change.before or _state(change.before) is not State.SUCCEEDED
            if change.after["type"]["S"] not in WITHOUT_EFFECT
        )
        for key in sorted({*effects, *wins}):
            self._require(
                effects.get(key, 0) == wins[key] and wins[key] <= self._inserted[key],
                "effects are exactly once",
                f"{effects.get(key, 0)} effects, {wins[key]} successes",
                key,
            )

    def attempts_within_policy(self) -> None:
        for run in self._runs():
            within = 1 <= run.attempt <= run.max_attempts
            self._require(within, "attempts within policy", f"attempt {run.attempt} ran", f"{run.tenant}#{run.job_id}")

    def tenants_are_apart(self) -> None:
        for run in self._runs():
            key = f"{run.tenant}#{run.job_id}"
            self._require(self._inserted[key] > 0, "tenants are apart", "ran for a tenant that has no such job", key)

    def limits_hold(self) -> None:
        """Of one key, no two run at a time; a run that lost its lease is not counted, as nothing it does counts."""
        by_key: dict[str, list[Observed]] = defaultdict(list)
        for run in self._runs():
            if run.limit_key is not None and run.ended_ms is not None:
                by_key[run.limit_key].append(run)
        for name, runs in by_key.items():
            runs.sort(key=lambda run: run.began_ms)
            for one, next_one in zip(runs, runs[1:], strict=False):
                apart = next_one.began_ms >= (one.ended_ms or 0)
                key = f"{next_one.tenant}#{next_one.job_id}"
                self._require(apart, "limits hold", f"{name}: {one.job_id} still ran", key)

    def letters_and_the_dead_agree(self) -> None:
        """Each letter is of a job, and each dead job has its letter, unless SQS or the stream lost it."""
        letters = {
            letter.body for queue in self._world.letters.values() for letter in queue.messages if '"letter"' in letter.body
        }
        counted = self._world.weather.counted
        lost = counted[Fault.MESSAGE_LOST] or counted[Fault.STREAM_TRIMMED] or counted[Fault.DUPLICATE]
        for key, item in self._jobs().items():
            if _state(item) is State.DEAD and not _expired(item, self._now_ms, late_ms=0):
                self._require("death" in item, "the dead have a reason", "no death", key)
                name, generation = key.rpartition("#")[2], _number(item, "generation")
                told = any(f'"id":"{name}","generation":{generation}' in body for body in letters)
                self._require(bool(told or lost), "the dead have a letter", f"generation {generation}", key)

    # What the checks look at.

    @property
    def _now_ms(self) -> int:
        return self._world.scheduler.now_ms

    def _jobs(self) -> dict[str, Item]:
        return {key[0]: item for key, item in self._world.jobs.items.items() if "state" in item}

    def _runs(self) -> list[Observed]:
        return self._world.runs

    def _require(self, holds: bool, check: str, what: str, about: str) -> None:
        if not holds:
            raise Violation(check, what, about)


def _state(item: Item | None) -> State | None:
    return State(item["state"]["S"]) if item else None


def _number(item: Item | None, name: str) -> int:
    return int(item[name]["N"]) if item and name in item else 0


def _text(item: Item | None, name: str) -> str:
    return str(item[name]["S"]) if item and name in item else ""


def _same(before: Item | None, after: Item, name: str) -> bool:
    return before is not None and before.get(name) == after.get(name)


def _tenant(key: str) -> str:
    return key.rpartition("#")[0]


def _expired(item: Item, now_ms: int, *, late_ms: int) -> bool:
    """By the clock that is furthest ahead."""
    return "expires_at" in item and _number(item, "expires_at") * 1000 <= now_ms + late_ms



