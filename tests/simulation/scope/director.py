"""The hub of a world in which each call waits until it is released with a chosen fate.

Between two calls an actor touches no shared state, so a schedule is an order of calls with a fate for each. A call is
held before it is sent. After its release no other actor runs until it is answered and its actor waits at its next call.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

from tests.simulation.scope.choices import Choices
from tests.simulation.scope.chosen_faults import ChosenRandom
from tests.simulation.scope.participants import LASTING, TRANSACTION, Actor, Call, Fate, Late, Option
from tests.simulation.scope.touched_items import keys_of
from tests.simulation.world.faults import Fault
from tests.simulation.world.task_scheduler import Process, Scheduler, Task

if TYPE_CHECKING:
    from tests.simulation.world.world import World

#: Shorter delays count as zero: only the order matters, and that is chosen.
_NO_TIME_MS: Final = 1000
#: The timeout of the SDK. Other actors may be faster, so this counts as zero as well.
_PATIENCE_MS: Final = 2000
#: Actions of a service delayed by more than that and at most this happen at a chosen time.
_LATE_MS: Final = 5000
#: Delay between a change and its stream record.
_MOMENT_MS: Final = 1
_STREAM: Final = "stream poller"
_SEND: Final = "SendMessageBatch"
_LANES: Final = "poller"

#: By fault, the fates that cause it.
_FAULTS_OF_FATES: Final[Mapping[Fault, frozenset[Fate]]] = {
    Fault.KILLED_BEFORE: frozenset({Fate.KILLED_BEFORE}),
    Fault.KILLED_AFTER: frozenset({Fate.KILLED_AFTER}),
    Fault.ANSWER_LOST: frozenset({Fate.ANSWER_LOST}),
    Fault.NOT_SENT: frozenset({Fate.UNANSWERED, Fate.CUT_OFF}),
    Fault.TRANSACTION_UNDER_WAY: frozenset({Fate.UNDER_WAY}),
}
#: Faults that occur without a held call: when a message is delivered or deleted.
_ELSEWHERE: Final = frozenset({Fault.DUPLICATE, Fault.DELETE_LOST, Fault.CLOCK_FAR_OFF})


class Director(Scheduler):
    """The hub of one schedule. It holds the calls of the `directed` functions, and of tools that request it.

    With `independent`, actors of different jobs touch no common item.
    """

    def __init__(
        self, choices: Choices, *, directed: frozenset[str], independent: bool, fates: frozenset[Fate] = frozenset(Fate)
    ) -> None:
        super().__init__(ChosenRandom(self))
        self.choices = choices
        self.held: list[Call] = []
        self.late: list[Late] = []
        self.actors: dict[Process, Actor] = {}
        #: Labels of actors, by process name and by receipt handle of their messages.
        self.labels: dict[str, str] = {}
        #: Called for every call of any actor.
        self.asked: Callable[[str, Mapping[str, Any]], None] = lambda _operation, _request: None
        #: Keys of jobs: a call for another job is not held. None for all jobs.
        self.only: frozenset[str] | None = None
        self._directed = directed
        self._possible = fates
        self._independent = independent
        self._world: World | None = None
        self._fates: dict[Task, Fate] = {}
        #: The last request of each task.
        self._last: dict[Task, object] = {}
        self._counted: Counter[str] = Counter()
        self._later_ms = 0
        self._begun = 0

    def direct(self, world: "World") -> None:
        """From now on every step in this world is chosen."""
        self._world = world

    # Time.

    def at(self, when_ms: int, call: Callable[..., None], *arguments: Any) -> None:
        if when_ms - self.now_ms < _NO_TIME_MS:
            when_ms = self.now_ms + self._later_ms
        super().at(when_ms, call, *arguments)

    def after(self, delay_ms: int, call: Callable[..., None], *arguments: Any) -> None:
        actor = self.actors.get(self._current.process) if self._current else None
        if actor and _PATIENCE_MS < delay_ms <= _LATE_MS:
            self.late.append(Late(actor, partial(call, *arguments)))
        else:
            super().after(0 if delay_ms <= _PATIENCE_MS else delay_ms, call, *arguments)

    def spawn(self, process: Process, run: Callable[[], None], *, delay_ms: int = 0) -> Task:
        self._later_ms = _MOMENT_MS if process.name == _STREAM else 0
        try:
            return super().spawn(process, run, delay_ms=delay_ms)
        finally:
            self._later_ms = 0

    @property
    def next_ms(self) -> int | None:
        """The time of the next call in the heap."""
        return self._heap[0][0] if self._heap else None

    def run_until_held(self, *, most_steps: int) -> None:
        """Run until every call is held or due later."""
        while self.next_ms is not None and self.next_ms <= self.now_ms + _MOMENT_MS:
            self.run(until_ms=self.next_ms, most_steps=most_steps)

    # Actors.

    @contextmanager
    def invocation(self, verb: str, event: Mapping[str, Any]) -> Iterator[None]:
        """Call this from a task, around an invocation of a function."""
        records = event.get("Records", [event])
        content = "\n".join(sorted(_described(record) for record in records))
        jobs = frozenset(name for record in records for name in _jobs(record))
        what = f"{verb} {blake2b(content.encode(), digest_size=8).hexdigest()}"
        directed = verb in self._directed and (self.only is None or bool(self.only & jobs))
        with self._acting(what, jobs, directed=directed, gives_up=False) as actor:
            self.labels.update(
                {record["receiptHandle"]: actor.label for record in records if "receiptHandle" in record}
            )
            yield

    @contextmanager
    def tool(self, name: str, *, directed: bool) -> Iterator[None]:
        """Call this from a task, around the run of a tool."""
        with self._acting(name, frozenset(), directed=directed, gives_up=True):
            yield

    @contextmanager
    def _acting(self, what: str, jobs: frozenset[str], *, directed: bool, gives_up: bool) -> Iterator[Actor]:
        process = self._running().process
        self._counted[what] += 1
        self._begun += 1
        label = f"{what} {self._counted[what]}"
        actor = Actor(label, self._begun, self.now_ms, process, directed, jobs, gives_up)
        self.actors[process] = actor
        self.labels[process.name] = label
        try:
            yield actor
        finally:
            del self.actors[process]

    # Calls.

    def hold(self, service: str, operation: str, request: Mapping[str, Any]) -> None:
        """Call this from a task before it makes this call."""
        task = self._running()
        actor = self.actors.get(task.process)
        self.asked(operation, request)
        self._fates.pop(task, None)
        # A message sent later is equivalent to a worker held for longer.
        if actor is None or not actor.directed or self._world is None or operation == _SEND:
            return
        if self._independent and (strange := keys_of(request) - actor.jobs):
            raise AssertionError(f"{actor.label} touches {strange}, which is not an item of its jobs")
        actor.number_of(task)
        again = self._last.get(task) is request
        self._last[task] = request
        call = Call(actor, task, object(), service, operation, request, again)
        if (forced := self._forced_fate(call)) is not None:
            self._fates[task] = forced
            return
        self.held.append(call)
        try:
            self.park(call.token)
        finally:
            self.held.remove(call)

    def answered(self, answer: object) -> None:
        """Call this from a task whose call was answered or failed."""
        task = self._running()
        if actor := self.actors.get(task.process):
            number = actor.number_of(task)
            response = f"{self.now_ms} {answer!r}".encode()
            actor.answers[number] = blake2b(response, key=actor.answers.get(number, b""), digest_size=16).digest()

    def options(self) -> list[Option]:
        """The possible next steps; none if no call is held. The first continues the oldest actor."""
        found: list[Call | Late] = sorted([*self.held, *self.late], key=lambda what: what.actor.number)
        if self._independent and found:
            # The order of two actors without common items does not matter.
            found = [what for what in found if what.actor.jobs & found[0].actor.jobs]
        options = [Option(what, fate) for what in found for fate in self._fates_of(what)]
        return sorted(options, key=lambda option: option.cost)

    def release(self, option: Option) -> None:
        what, actor = option.what, option.what.actor
        if isinstance(what, Late):
            self._log(actor, "its transaction is applied at last")
            self.late.remove(what)
            self.at(self.now_ms, what.act)
            return
        self._log(actor, f"{what.operation}: {option.fate}")
        self._fates[what.task] = option.fate
        actor.calls += 1
        if option.fate in LASTING:
            actor.lasting.add(option.fate)
        if option.fate is Fate.UNANSWERED:
            actor.unanswered = what.request
        if self._item_is_held(what.request):
            actor.refused.add(_again(what))
        self.wake(what.task, what.token)

    def _fates_of(self, what: Call | Late) -> Sequence[Fate]:
        """A call on an item that a transaction holds is refused, so no fault makes a difference to it."""
        if isinstance(what, Late) or not self.choices.may_fail or self._item_is_held(what.request):
            return [Fate.FINE]
        return [fate for fate in what.fates if fate in self._possible]

    def _forced_fate(self, call: Call) -> Fate | None:
        """The fate of a call that has no effect at any time; None for other calls."""
        actor = call.actor
        if call.service == "dynamodb" and Fate.CUT_OFF in actor.lasting:
            return Fate.CUT_OFF
        if call.operation == TRANSACTION and Fate.BUSY in actor.lasting:
            return Fate.BUSY
        if call.again and actor.unanswered is call.request:
            return Fate.UNANSWERED
        return Fate.FINE if _again(call) in actor.refused and self._item_is_held(call.request) else None

    def _item_is_held(self, request: Mapping[str, Any]) -> bool:
        """Whether a transaction holds an item of this request."""
        tables = (self._world.jobs, self._world.effects) if self._world else ()
        return any((key,) in table.held for table in tables for key in keys_of(request))

    def _log(self, actor: Actor, what: str) -> None:
        if self._world:
            self._world.log(actor.process.name, what)

    # The `Decider` of `ChosenRandom` and `ChosenFaults`.

    def pick(self, count: int) -> int:
        return self.choices.choose([0] * count) if self._world and count > 1 else 0

    def unique_bits(self) -> int:
        """Derived from the actor and its number of draws, since a global counter would reveal the order of steps."""
        process = self._current.process.name if self._current else ""
        name = self.labels.get(process, process)
        self._counted[name] += 1
        return int.from_bytes(blake2b(f"{name} {self._counted[name]}".encode(), digest_size=32).digest())

    def has_fault(self, fault: Fault) -> bool:
        if fault is Fault.COLD_START:
            # Environments are never reused, so that their choice does not matter.
            return True
        if self._world is None:
            return False
        if fault in _ELSEWHERE:
            return self._occurs_elsewhere(fault)
        if self._current is None:
            return False
        if fault is Fault.TRANSACTION_CONFLICT:
            actor = self.actors.get(self._current.process)
            return actor is not None and Fate.BUSY in actor.lasting
        return self._fates.get(self._current) in _FAULTS_OF_FATES.get(fault, ())

    def _occurs_elsewhere(self, fault: Fault) -> bool:
        poller = self._current.process.name if self._current else ""
        of_a_worker = fault is not Fault.CLOCK_FAR_OFF or poller.startswith(_LANES)
        return of_a_worker and self.choices.may_fail and bool(self.choices.choose([0, 1]))


def _again(call: Call) -> tuple[str, frozenset[str], bool]:
    return call.operation, frozenset(keys_of(call.request)), call.again


def _described(record: Mapping[str, Any]) -> str:
    """The content of a record without its position and time."""
    if "body" in record:
        return str(record["body"])
    return json.dumps(record.get("dynamodb", {}).get("NewImage", record), sort_keys=True, default=repr)


def _jobs(record: Mapping[str, Any]) -> Iterator[str]:
    if "body" in record:
        body = json.loads(record["body"])
        yield f"{body['tenant']}#{body['id']}"
