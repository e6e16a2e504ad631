"""Whether `explain` is right: at random moments, for a random job, compared with what the simulator knows.

The facts are read as the command line reads them, at one moment of the world. The expected reason comes from the raw
items, from the queue, and from the writes that brought the job where it is; not from the code that explains. The
choice of moments draws from a source of its own, so that the histories of all seeds stay as they are.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any, Final

from tests.simulation.checks.adaptive_limits import slots_in
from tests.simulation.checks.caps import cap_of
from tests.simulation.checks.explained_details import FURTHER, details
from tests.simulation.checks.violation import (
    Item,
    cap_in_words,
    capped,
    has_expired,
    map_of,
    number_of,
    require,
    state_of,
    tenant_of,
    text_of,
    wait_began,
    waits_alone,
)
from tests.simulation.deployment import JOBS_TABLE
from tests.simulation.world.dynamodb_table import Record
from tests.simulation.world.world import World
from tidemill.application.explain.explain import explain
from tidemill.application.explain.explanation import Answer, Reason
from tidemill.domain.errors import MalformedDocumentError, NewerSchemaError
from tidemill.domain.job import Job
from tidemill.domain.states import TERMINAL, State
from tidemill.domain.waiting.waiting import Line
from tidemill.dynamodb.job_reader import JobReader
from tidemill.operator.explain.job_facts import JobFacts

#: One look in so many steps of the world.
_STEPS_PER_LOOK: Final = 25
#: All but one in so many looks are at a live job, if there is one.
_LIVE_OF: Final = 10
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TIMED: Final = frozenset({State.QUEUED, State.RETRYING, State.SCHEDULED})
#: What the answer has to name for each cause of a hold.
_HOLD_WORDS: Final = {
    "suspect": "crashed its last worker",
    "stray": "beyond its time",
    "outage": "store did not respond",
    "version": "does not know its type",
    "pause": "had paused it",
    "type": "could not load its type",
    "breaker": "breaker of its downstream",
    "undo": "its undo had not succeeded",
    "call": "failed for several jobs",
}


class _Direct:
    """A client whose calls take no time, fail never, and change nothing."""

    def __init__(self, service: object) -> None:
        self._service = service

    def __getattr__(self, operation: str) -> Callable[..., Any]:
        call = getattr(self._service, operation)
        return lambda **request: call(request)


class _DecodedJobs(JobReader):
    """Decodes each document once: a write replaces the document in the table, and leaves the former one as it was."""

    def __init__(self, client: Any, items: Mapping[tuple[str, ...], Item]) -> None:
        super().__init__(client, table=JOBS_TABLE)
        self._items = items
        self._decoded: dict[str, tuple[Item | None, Job | None]] = {}

    def get(self, tenant: str, job_id: str) -> Job | None:
        key = f"{tenant}#{job_id}"
        item = self._items.get((key,))
        if key not in self._decoded or self._decoded[key][0] is not item:
            self._decoded[key] = item, super().get(tenant, job_id)
        return self._decoded[key][1]


class ExplanationChecks:
    """Watches the jobs table of one world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._random = Random(world.seed)
        self._steps_without = self._drawn_steps()
        #: By key, why the job has its present `due`.
        self._causes: dict[str, Reason] = {}
        dynamodb: Any = _Direct(world.dynamodb)
        sqs: Any = _Direct(world.sqs)
        self._facts = JobFacts(
            dynamodb,
            sqs,
            table=JOBS_TABLE,
            queues={name: queue.url for name, queue in world.lanes.items()},
            clock=lambda: _EPOCH + timedelta(milliseconds=world.scheduler.now_ms),
        )
        self._facts._jobs = _DecodedJobs(dynamodb, world.jobs.items)
        world.jobs.watchers.append(self._changed)

    def look(self) -> None:
        """Explain one job, at some of the moments at which this is called. Raises `Violation`."""
        if self._steps_without:
            self._steps_without -= 1
            return
        jobs = {key: item for (key,), item in self._world.jobs.items.items() if "state" in item}
        live = [key for key, item in jobs.items() if state_of(item) not in TERMINAL]
        if jobs:
            often = live if live and self._random.randrange(_LIVE_OF) else list(jobs)
            self._explain(self._random.choice(often))
        self._steps_without = self._drawn_steps()

    def _drawn_steps(self) -> int:
        """How many steps go by without a look, if each has one with a chance of one in `_STEPS_PER_LOOK`."""
        steps = 0
        while self._random.randrange(_STEPS_PER_LOOK):
            steps += 1
        return steps

    def _explain(self, key: str) -> None:
        tenant, _, job_id = key.rpartition("#")
        try:
            facts = self._facts.read(tenant, job_id)
        except (MalformedDocumentError, NewerSchemaError):
            return  # only the next version of the code can read it
        item = self._world.jobs.items[key,]
        if has_expired(item, self._now_ms):
            require(facts is None, "an expired job is not explained", f"explained as {facts}", key)
            return
        if facts is None:
            require(False, "every job is explained", "explain finds no such job", key)
            return
        answer = explain(facts)
        expected, words = self._expected(key, item)
        said = " ".join(answer.sentences)
        what = f"{state_of(item)}: {answer.reason.name}, not {expected.name}: {said}"
        require(answer.reason is expected, "an explanation is right", what, key)
        require(words in said, "an explanation names its cause", f"{answer.reason.name} without {words!r}: {said}", key)
        self._until(key, item, answer)
        missing = [words for words in details(item, answer.reason) if words not in said]
        require(not missing, "an explanation has its details", f"no {missing}: {said}", key)
        if answer.reason is Reason.BEHIND_HEAD:
            self._places_behind(key, item, said)
        told = {name for name, words in FURTHER.items() if words in said}
        further = {name for name in FURTHER if name in item and state_of(item) not in TERMINAL}
        require(told == further, "an explanation has its details", f"{told}, not {further}: {said}", key)

    def _until(self, key: str, item: Item, answer: Answer) -> None:
        """It names a time exactly when the document has one that is to come."""
        due_ms = number_of(item, "due") if "due" in item else None
        if answer.reason is Reason.PAUSED:
            due_ms = self._pauses()[item["wait"]["M"]["key"]["S"]]
        ahead = due_ms is not None and due_ms > self._now_ms
        wanted = _EPOCH + timedelta(milliseconds=due_ms) if due_ms is not None and ahead else None
        require(answer.until == wanted, "an explanation names the time", f"until {answer.until}, not {wanted}", key)

    def _expected(self, key: str, item: Item) -> tuple[Reason, str]:
        """The reason, and a word that the sentences must have."""
        ahead = number_of(item, "due") > self._now_ms
        match state_of(item):
            case State.SUCCEEDED | State.CANCELLED | State.EXPIRED:
                found = Reason.ENDED, ""
            case State.DEAD:
                found = Reason.DEAD, text_of(item, "death")
            case State.RUNNING:
                found = (Reason.RUNNING if ahead else Reason.LEASE_OVER), ""
            case State.WAITING:
                found = self._in_group(key, item)
            case State.PARKED:
                alone = Reason.AWAITED, text_of(map_of(item, "wait"), "key")
                found = alone if waits_alone(item) else self._in_line(item)
            case _ if ahead:
                cause = self._causes[key]
                found = cause, _HOLD_WORDS[text_of(item, "hold_cause")] if cause is Reason.HELD else ""
            case State.SCHEDULED:
                found = Reason.WAKE_LATE, ""
            case _:
                found = self._on_lane(key, item)
        return found

    def _in_group(self, key: str, item: Item) -> tuple[Reason, str]:
        tenant, group = tenant_of(key), text_of(item, "group")
        head = self._head(key, item)
        leader = self._item(f"{tenant}#{text_of(head, 'job')}")
        place = (text_of(leader, "group"), number_of(leader, "sequence"))
        if leader is None or place != (group, number_of(head, "sequence")):
            return Reason.GROUP_TURN, ""
        state = state_of(leader)
        if state is State.DEAD and "blocks" in leader:
            return Reason.BLOCKED, text_of(head, "job")
        over = state in {State.SUCCEEDED, State.CANCELLED, State.EXPIRED, State.DEAD}
        return (Reason.GROUP_TURN if over else Reason.BEHIND_HEAD), text_of(head, "job")

    def _places_behind(self, key: str, item: Item, said: str) -> None:
        head_job = self._item(f"{tenant_of(key)}#{text_of(self._head(key, item), 'job')}")
        places = number_of(item, "sequence") - number_of(head_job, "sequence")
        words = f"It is {places} {'place' if places == 1 else 'places'} behind the head."
        require(words in said, "an explanation has its details", f"no {words!r}: {said}", key)

    def _head(self, key: str, item: Item) -> Item:
        name = [tenant_of(key), text_of(item, "group")]
        return self._item("!head#" + json.dumps(name, separators=(",", ":"), ensure_ascii=False)) or {}

    def _in_line(self, item: Item) -> tuple[Reason, str]:
        key = text_of(item["wait"]["M"], "key")
        if text_of(item["wait"]["M"], "cause") == "pause":
            return (Reason.PAUSED if key in self._pauses() else Reason.RESUMED), ""
        if text_of(item["wait"]["M"], "cause") == "type":
            return Reason.UNLOADED, key
        if text_of(item["wait"]["M"], "cause") == "breaker":
            circuit = text_of(self._item(f"!breaker#{key}") or {}, "circuit")
            forced = next((entry for name, entry, _ in self._settings() if name == f"breakers.{key}"), None)
            closed = (forced["value"]["force"] if forced else circuit) in {"", "closed"}
            return (Reason.BREAKER_CLOSED if closed else Reason.BREAKER_OPEN), key
        return self._behind_cap(item) if capped(item) else self._behind_limit(key)

    def _behind_cap(self, item: Item) -> tuple[Reason, str]:
        key = text_of(item["wait"]["M"], "key")
        cap = cap_of({name: entry["value"] for name, entry, _ in self._settings()}, json.loads(key)["tenant"])
        full = cap is not None and self._used(key) >= cap
        return (Reason.NO_SLOT if full else Reason.LINE_MOVES), cap_in_words(item["wait"]["M"])

    def _used(self, key: str) -> int:
        """The slots of a limit item whose time is not over."""
        held = map_of(self._item(f"!limit#{key}") or {}, "held")
        return sum(int(until["N"]) > self._now_ms for until in held.values())

    def _behind_limit(self, key: str) -> tuple[Reason, str]:
        limit = self._item(f"!limit#{key}") or {}
        if "slots" in limit and self._used(key) >= slots_in(limit):
            return Reason.NO_SLOT, key
        if "period" in limit:
            count = number_of(limit, "count")
            interval = -(-number_of(limit, "period") // count)
            arrival = number_of(limit, "arrival") - (count - 1) * interval
            if max(arrival, number_of(limit, "promised")) > self._now_ms * 1000:
                return Reason.NO_RATE, key
        return Reason.LINE_MOVES, key

    def _pauses(self) -> dict[str, int | None]:
        """By line, the end of each pause in force, in milliseconds."""
        return {
            Line.for_pause(name.removeprefix("pauses.")).key: end_ms
            for name, _, end_ms in self._settings()
            if name.startswith("pauses.")
        }

    def _settings(self) -> Iterator[tuple[str, dict[str, Any], int | None]]:
        """Name, entry and end, in milliseconds, of each setting in force."""
        document = json.loads(text_of(self._item("!config"), "document") or "{}")
        for name, entry in document.get("settings", {}).items():
            end = datetime.fromisoformat(entry["until"]) if "until" in entry else None
            end_ms = None if end is None else (end - _EPOCH) // timedelta(milliseconds=1)
            if end_ms is None or end_ms > self._now_ms:
                yield name, entry, end_ms

    def _on_lane(self, key: str, item: Item) -> tuple[Reason, str]:
        tenant, _, job_id = key.rpartition("#")
        parts = json.dumps(["dispatch", tenant, job_id], separators=(",", ":"), ensure_ascii=False)
        owed = self._item("!owed#" + parts)
        if owed and "resent" not in owed:
            return Reason.OWED, ""
        lane = text_of(item, "lane")
        return (Reason.ON_LANE if self._world.lanes[lane].messages else Reason.NO_MESSAGE), lane

    def _changed(self, record: Record) -> None:
        before, after, key = record.before, record.after, record.keys["pk"]["S"]
        if after and "state" in after and state_of(after) in _TIMED and (cause := _cause(before, after)):
            self._causes[key] = cause

    def _item(self, key: str) -> Item | None:
        return self._world.jobs.items.get((key,))

    @property
    def _now_ms(self) -> int:
        return self._world.scheduler.now_ms


def _cause(before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> Reason | None:
    """Why this write set the time. None if it left the time as it was."""
    if (
        before is None
        or before["created_at"] != after["created_at"]
        or ("burst" in after and after.get("run_at") == after["due"] != before["due"])
    ):
        return Reason.DELAYED
    match state_of(before):
        case State.WAITING | State.DEAD as was:
            return Reason.DELAYED if was is State.WAITING else Reason.REDRIVEN
        case State.PARKED | State.QUEUED if any(before.get(name) != after.get(name) for name in ("signals", "looks")):
            # A signal ends the wait at once, and so does a request that a flow looks at its nodes. One that is kept
            # for later changes no time.
            return Reason.HANDLER_DELAY if after["due"] != before["due"] else None
        case State.PARKED:
            released = {"pause": Reason.RESUMED, "type": Reason.LOADED, "breaker": Reason.BREAKER_RELEASED}
            # Wake leaves the end of a wait for a signal as it is. Reconcile, which comes long after that end, sets its
            # own present time, which is ahead if its clock is: the job waits for no signal then, as after a signal.
            over = waits_alone(before) and number_of(after, "due") > number_of(before, "due")
            alone = Reason.HANDLER_DELAY if over else Reason.AWAITED if waits_alone(before) else Reason.TURN
            wait = map_of(before, "wait")
            # A pause that ends before the wait for a signal does leaves the job waiting.
            waits_on = after["due"] == wait.get("not_before") == map_of(before, "awaited").get("until")
            return Reason.AWAITED if waits_on else released.get(text_of(wait, "cause"), alone)
        case State.RUNNING if "owner" not in after:
            return _after_run(before, after)
    return None


def _after_run(before: Item, after: Item) -> Reason | None:
    def rose(name: str) -> bool:
        return number_of(after, name) > number_of(before, name)

    if number_of(after, "holds"):
        return Reason.TURN if text_of(after, "hold_cause") == "limit" else Reason.HELD
    if rose("hops"):
        waits = wait_began(before, after) and after["due"] == map_of(after, "awaited")["until"]
        return Reason.AWAITED if waits else Reason.HANDLER_DELAY
    if before.get("errors") != after.get("errors"):
        return Reason.BACKOFF
    # A release, or a claim that is given back because its answer was lost.
    return Reason.RELEASED if text_of(after, "last_owner") == text_of(before, "owner") else None
