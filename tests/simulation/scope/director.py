"""Whose turn it is, and what befalls them: the hub of a world in which each call waits until it is let go.

Whoever makes calls is an actor: an invocation, or a person's tool. Between two of its calls an actor touches nothing
that others see, so a schedule is an order of calls, and what became of each. A call is held before it sets out. Once
it is let go, nothing else moves until it has been answered and its actor holds at the next.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from hashlib import blake2b
from typing import Any, Final

from tests.simulation.scope.chance import Chance
from tests.simulation.scope.choices import Choices
from tests.simulation.world.faults import Fault
from tests.simulation.world.scheduler import Process, Scheduler, Task

#: Less than this is no time: only what comes first counts, and that is chosen.
_NO_TIME_MS: Final = 1000
#: As long as the SDK waits for an answer. Others may well be quicker, so it waits no time either.
_PATIENCE_MS: Final = 2000
#: What a service does later than that, but within so long, is done when it is chosen to be.
_LATE_MS: Final = 5000


class Fate(StrEnum):
    """What becomes of a call. All but the first are faults."""

    FINE = "answered"
    KILLED_BEFORE = "its process is killed before it"
    KILLED_AFTER = "applied, and its process is killed"
    ANSWER_LOST = "applied, and the answer is lost, so that the SDK sends it again"
    UNANSWERED = "not answered, however often the SDK sends it"
    CUT_OFF = "not answered, like every call to the table from then on"
    BUSY = "in conflict with another transaction, like every transaction from then on"
    UNDER_WAY = "applied much later than the client waits for it"


#: Which of the weather's faults each brings about.
_STRIKES: Final[Mapping[Fault, frozenset[Fate]]] = {
    Fault.KILLED_BEFORE: frozenset({Fate.KILLED_BEFORE}),
    Fault.KILLED_AFTER: frozenset({Fate.KILLED_AFTER}),
    Fault.ANSWER_LOST: frozenset({Fate.ANSWER_LOST}),
    Fault.NOT_SENT: frozenset({Fate.UNANSWERED, Fate.CUT_OFF}),
    Fault.TRANSACTION_CONFLICT: frozenset({Fate.BUSY}),
    Fault.TRANSACTION_UNDER_WAY: frozenset({Fate.UNDER_WAY}),
}
#: What may strike where no call is held: as a message is delivered, or deleted, or a change is read from the stream.
_ELSEWHERE: Final = frozenset({Fault.DUPLICATE, Fault.DELETE_LOST, Fault.CLOCK_FAR_OFF})
_STREAM: Final = "stream poller"
_MOMENT_MS: Final = 1
_READS: Final = frozenset({"GetItem", "BatchGetItem", "Query"})
_HARMLESS: Final = frozenset({"ChangeMessageVisibilityBatch"})
_TRANSACTION: Final = "TransactWriteItems"


@dataclass(slots=True, eq=False)
class Actor:
    """Whoever makes calls. Its label tells what it is about, not when it came, so two orders of the same are one."""

    label: str
    number: int
    began_ms: int
    process: Process
    #: Whether its calls are held.
    directed: bool
    #: Keys of the jobs that it is about.
    jobs: frozenset[str]
    #: Whether it ends with the first call that is not answered.
    gives_up: bool
    #: Of all that it has been answered, and when: where it stands, since it follows from that.
    heard: bytes = b""
    calls: int = 0
    draws: int = 0
    lasting: set[Fate] = field(default_factory=set)
    #: The call that was last left unanswered.
    unanswered: object = None
    #: What a transaction stood in the way of: operation, keys, and whether the SDK sent it once more. The same again
    #: finds what it would have found if it had been held instead.
    refused: set[tuple[str, frozenset[str], bool]] = field(default_factory=set)


@dataclass(slots=True, eq=False)
class Call:
    """One that is held."""

    actor: Actor
    task: Task
    token: object
    service: str
    operation: str
    request: Mapping[str, Any]
    #: Whether the SDK sends it once more.
    again: bool

    @property
    def fates(self) -> Sequence[Fate]:
        """What can become of it, and is not the same as something else.

        To be killed before a call is to be killed after the one before it. A read changes nothing, and neither does a
        message that is hidden twice. A call that is throttled or not sent, and sent again with success, by the SDK or
        by a transaction that is tried again in place, is one that was held for longer. Whoever gives up when a call is
        not answered might as well have been killed, or cut off.
        """
        found = [Fate.FINE]
        if not self.actor.calls and not self.actor.gives_up:
            found.append(Fate.KILLED_BEFORE)
        if self.operation not in _READS:
            found.append(Fate.KILLED_AFTER)
        if self.operation not in _READS | _HARMLESS:
            found.append(Fate.ANSWER_LOST)
        if self.operation != _TRANSACTION or self.again or self.actor.gives_up:
            found.append(Fate.UNANSWERED)
        if self.service == "dynamodb" and not self.actor.gives_up:
            found.append(Fate.CUT_OFF)
        if self.operation == _TRANSACTION:
            found += [Fate.BUSY, Fate.UNDER_WAY]
        return found


@dataclass(slots=True, eq=False)
class Late:
    """What a service has yet to do for an actor, whether or not that lives."""

    actor: Actor
    act: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Option:
    """Let this call go, to that fate, or have done what is late."""

    step: Call | Late
    fate: Fate = Fate.FINE

    @property
    def cost(self) -> int:
        """In faults."""
        return 0 if self.fate is Fate.FINE else 1


class Director(Scheduler):
    """The hub of one schedule. `directed` are the functions whose calls are held; a tool's are if it says so."""

    def __init__(self, choices: Choices, *, directed: frozenset[str], apart: bool) -> None:
        super().__init__(Chance(self))
        self.choices = choices
        self.say: Callable[[str, str], None] = lambda _who, _what: None
        self.held: list[Call] = []
        self.late: list[Late] = []
        self.actors: dict[Process, Actor] = {}
        #: Labels, by name of the process, and by receipt of what it was given.
        self.labels: dict[str, str] = {}
        self._directed = directed
        self._apart = apart
        self._fates: dict[Task, Fate] = {}
        #: What each task has last asked for.
        self._last: dict[Task, object] = {}
        self._counted: Counter[str] = Counter()
        #: Whether a transaction holds an item that this request touches.
        self.in_the_way: Callable[[Mapping[str, Any]], bool] = lambda _request: False
        self._later_ms = 0
        self._began = False
        self._begun = 0

    def begin(self) -> None:
        """From now on what happens is chosen."""
        self._began = True

    def spawn(self, process: Process, run: Callable[[], None], *, delay_ms: int = 0) -> Task:
        """What the stream brings about comes later than what it tells of, if only by a moment."""
        self._later_ms = _MOMENT_MS if process.name == _STREAM else 0
        try:
            return super().spawn(process, run, delay_ms=delay_ms)
        finally:
            self._later_ms = 0

    def settle_down(self, *, most_steps: int) -> None:
        """Until all that is left is held, or takes time."""
        while self.next_ms is not None and self.next_ms <= self.now_ms + _MOMENT_MS:
            self.run(until_ms=self.next_ms, most_steps=most_steps)

    def at(self, when_ms: int, call: Any, *arguments: Any) -> None:
        if when_ms - self.now_ms < _NO_TIME_MS:
            when_ms = self.now_ms + self._later_ms
        super().at(when_ms, call, *arguments)

    def after(self, delay_ms: int, call: Any, *arguments: Any) -> None:
        actor = self.actors.get(self._current.process) if self._current else None
        if actor and _PATIENCE_MS < delay_ms <= _LATE_MS:
            self.late.append(Late(actor, partial(call, *arguments)))
        else:
            super().after(0 if delay_ms <= _PATIENCE_MS else delay_ms, call, *arguments)

    @property
    def next_ms(self) -> int | None:
        """When something happens by itself."""
        return self._heap[0][0] if self._heap else None

    @contextmanager
    def invocation(self, verb: str, event: Mapping[str, Any]) -> Iterator[None]:
        """From a task: one of this function is under way."""
        records = event.get("Records", [event])
        told = sorted(_told(record) for record in records)
        jobs = frozenset(name for record in records for name in _jobs(record))
        with self._acting(f"{verb} {_digest(told)}", jobs, directed=verb in self._directed) as actor:
            self.labels.update(
                {record["receiptHandle"]: actor.label for record in records if "receiptHandle" in record}
            )
            yield

    @contextmanager
    def tool(self, name: str, *, directed: bool) -> Iterator[None]:
        """From a task: somebody's command runs."""
        with self._acting(name, frozenset(), directed=directed, gives_up=True):
            yield

    @contextmanager
    def _acting(self, what: str, jobs: frozenset[str], *, directed: bool, gives_up: bool = False) -> Iterator[Actor]:
        process = self._running().process
        self._counted[what] += 1
        label = f"{what} {self._counted[what]}"
        self._begun += 1
        actor = Actor(label, self._begun, self.now_ms, process, directed, jobs, gives_up)
        self.actors[process] = actor
        self.labels[process.name] = label
        try:
            yield actor
        finally:
            del self.actors[process]

    def hold(self, service: str, operation: str, request: Mapping[str, Any]) -> None:
        """From a task that is about to make this call."""
        task = self._running()
        actor = self.actors.get(task.process)
        self._fates.pop(task, None)
        if actor is None or not actor.directed or not self._began:
            return
        if self._apart and (strange := keys_of(request) - actor.jobs):
            raise AssertionError(f"{actor.label} touches {strange}, which others may as well")
        again = self._last.get(task) is request
        self._last[task] = request
        if (doom := self._doom(actor, service, operation, request, again=again)) is not None:
            self._fates[task] = doom
            return
        call = Call(actor, task, object(), service, operation, request, again)
        self.held.append(call)
        try:
            self.park(call.token)
        finally:
            self.held.remove(call)

    def _doom(
        self, actor: Actor, service: str, operation: str, request: Mapping[str, Any], *, again: bool
    ) -> Fate | None:
        """The fate of a call that has no effect on anybody, whenever it comes; None for one that may have."""
        if service == "dynamodb" and Fate.CUT_OFF in actor.lasting:
            return Fate.CUT_OFF
        if operation == _TRANSACTION and Fate.BUSY in actor.lasting:
            return Fate.FINE
        if again and actor.unanswered is request:
            return Fate.UNANSWERED
        known = (operation, frozenset(keys_of(request)), again) in actor.refused
        return Fate.FINE if known and self.in_the_way(request) else None

    def hears(self, answer: object) -> None:
        """From a task whose call has been answered, or has failed."""
        if actor := self.actors.get(self._running().process):
            actor.heard = blake2b(f"{self.now_ms} {answer!r}".encode(), key=actor.heard[:16], digest_size=16).digest()

    def options(self) -> list[Option]:
        """What can happen next; none when nothing is held. The first goes on with whoever came first."""
        steps: list[Call | Late] = sorted([*self.held, *self.late], key=lambda step: step.actor.number)
        if self._apart and steps:
            # Of two that touch nothing in common it does not matter which goes first.
            steps = [step for step in steps if step.actor.jobs & steps[0].actor.jobs]
        return [Option(step, fate) for step in steps for fate in self._fates_of(step)]

    def _fates_of(self, step: Call | Late) -> Sequence[Fate]:
        """A call that a transaction stands in the way of is refused, so there is nothing to lose with it."""
        if isinstance(step, Late) or not self.choices.may_fail or self.in_the_way(step.request):
            return [Fate.FINE]
        return step.fates

    def let_go(self, option: Option) -> None:
        step = option.step
        if isinstance(step, Late):
            self.say(step.actor.process.name, "its transaction is applied at last")
            self.late.remove(step)
            self.at(self.now_ms, step.act)
            return
        self.say(step.actor.process.name, f"{step.operation}: {option.fate}")
        self._fates[step.task] = option.fate
        step.actor.calls += 1
        if option.fate in {Fate.CUT_OFF, Fate.BUSY}:
            step.actor.lasting.add(option.fate)
        if option.fate is Fate.UNANSWERED:
            step.actor.unanswered = step.request
        if self.in_the_way(step.request):
            step.actor.refused.add((step.operation, frozenset(keys_of(step.request)), step.again))
        self.wake(step.task, step.token)

    # What `Chance` and `Chosen` ask.

    def pick(self, count: int) -> int:
        return self.choices.choose([0] * count) if self._began else 0

    def unlike(self) -> int:
        process = self._current.process if self._current else None
        name = self.labels.get(process.name, process.name) if process else ""
        self._counted[f"bits {name}"] += 1
        return int.from_bytes(blake2b(f"{name} {self._counted[f'bits {name}']}".encode(), digest_size=32).digest())

    def has_strike(self, fault: Fault) -> bool:
        if fault is Fault.COLD_START:
            # No environment is used again, so that it does not matter which.
            return True
        if not self._began:
            return False
        if fault in _ELSEWHERE:
            return self._strikes_elsewhere(fault)
        task = self._current
        fate = self._fates.get(task) if task else None
        if fault is Fault.TRANSACTION_CONFLICT and task and (actor := self.actors.get(task.process)):
            return Fate.BUSY in actor.lasting
        return fate in _STRIKES.get(fault, ())

    def _strikes_elsewhere(self, fault: Fault) -> bool:
        poller = self._current.process.name if self._current else ""
        if fault is Fault.CLOCK_FAR_OFF and not poller.startswith("poller"):
            return False
        return self.choices.may_fail and bool(self.choices.choose([0, 1]))


def _told(record: Mapping[str, Any]) -> str:
    """What a record says, without where and when."""
    if "body" in record:
        return str(record["body"])
    return json.dumps(record.get("dynamodb", {}).get("NewImage", record), sort_keys=True, default=repr)


def _jobs(record: Mapping[str, Any]) -> Iterator[str]:
    if "body" in record:
        body = json.loads(record["body"])
        yield f"{body['tenant']}#{body['id']}"


def keys_of(request: Mapping[str, Any]) -> set[str]:
    """Of the items that a request touches."""
    writes = [write for entry in request.get("TransactItems", ()) for write in entry.values()] or [request]
    return {(write.get("Key") or write["Item"])["pk"]["S"] for write in writes if "TableName" in write}


def _digest(told: Sequence[str]) -> str:
    return blake2b("\n".join(told).encode(), digest_size=8).hexdigest()
