"""The actors of a schedule, their held calls, and the options for each."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from tests.simulation.scope.touched_items import Step, keys_of
from tests.simulation.world.task_scheduler import Process, Task

_READS: Final = frozenset({"GetItem", "BatchGetItem", "Query"})
_HARMLESS: Final = frozenset({"ChangeMessageVisibilityBatch"})
TRANSACTION: Final = "TransactWriteItems"
_BY_THE_SERVICE: Final = -1


class Fate(StrEnum):
    """The fate of a call. All but the first are faults."""

    FINE = "answered"
    KILLED_BEFORE = "its process is killed before it"
    KILLED_AFTER = "applied, and its process is killed"
    ANSWER_LOST = "applied, and the answer is lost, so that the SDK sends it again"
    UNANSWERED = "not answered, however often the SDK sends it"
    CUT_OFF = "not answered, like every call to the table from then on"
    BUSY = "in conflict with another transaction, like every transaction from then on"
    UNDER_WAY = "applied much later than the client waits for it"


#: Fates that apply to all later calls of the actor.
LASTING: Final = frozenset({Fate.CUT_OFF, Fate.BUSY})
_OF_ALL: Final = LASTING | {Fate.KILLED_BEFORE, Fate.KILLED_AFTER}


@dataclass(slots=True, eq=False)
class Actor:
    """An invocation or a tool that makes calls.

    Its label depends on its work and not on its time, so that two orders of the same work are equal.
    """

    label: str
    number: int
    began_ms: int
    process: Process
    #: Whether its calls are held.
    directed: bool
    #: Keys of its jobs.
    jobs: frozenset[str]
    #: Whether it ends at the first unanswered call.
    gives_up: bool
    tasks: dict[Task, int] = field(default_factory=dict)
    #: By task, a digest of all responses with their times. They determine the state of the task.
    answers: dict[int, bytes] = field(default_factory=dict)
    calls: int = 0
    lasting: set[Fate] = field(default_factory=set)
    #: The last unanswered request.
    unanswered: object = None
    #: Calls refused because a transaction held an item: operation, keys, and whether the SDK repeated it. A repeat is
    #: equivalent to a call held for longer.
    refused: set[tuple[str, frozenset[str], bool]] = field(default_factory=set)

    def number_of(self, task: Task) -> int:
        """The number of a task. Tasks start in the same order in every schedule."""
        return self.tasks.setdefault(task, len(self.tasks))


@dataclass(slots=True, eq=False)
class Call:
    """A held call."""

    actor: Actor
    task: Task
    token: object
    service: str
    operation: str
    request: Mapping[str, Any]
    #: Whether the SDK repeats the request.
    again: bool

    @property
    def fates(self) -> Sequence[Fate]:
        """The possible fates, without those that are equivalent to others.

        A kill before a call equals a kill after the call before it. A read changes nothing, and hiding a message twice
        neither. A call that is throttled or not sent and then repeated with success, by the SDK or by a transaction
        that retries in place, equals a call held for longer. For an actor that gives up at an unanswered call, this
        equals a kill or a cut-off.
        """
        found = [Fate.FINE]
        if not self.actor.calls and not self.actor.gives_up:
            found.append(Fate.KILLED_BEFORE)
        if self.operation not in _READS:
            found.append(Fate.KILLED_AFTER)
        if self.operation not in _READS | _HARMLESS:
            found.append(Fate.ANSWER_LOST)
        if self.operation != TRANSACTION or self.again or self.actor.gives_up:
            found.append(Fate.UNANSWERED)
        if self.service == "dynamodb" and not self.actor.gives_up:
            found.append(Fate.CUT_OFF)
        if self.operation == TRANSACTION:
            found += [Fate.BUSY, Fate.UNDER_WAY]
        return found


@dataclass(slots=True, eq=False)
class Late:
    """A delayed action of a service for an actor, which happens even if the actor is dead."""

    actor: Actor
    act: Callable[[], None]


@dataclass(frozen=True, slots=True)
class Option:
    """Release this call with that fate, or perform the delayed action."""

    what: Call | Late
    fate: Fate = Fate.FINE

    @property
    def cost(self) -> int:
        """Number of faults."""
        return 0 if self.fate is Fate.FINE else 1

    @property
    def name(self) -> Step:
        """The same in every state where this option exists."""
        task = self.what.actor.number_of(self.what.task) if isinstance(self.what, Call) else _BY_THE_SERVICE
        return self.what.actor.label, task, self.fate.value

    @property
    def of_all(self) -> bool:
        """Whether it affects the whole actor, not one task."""
        return self.fate in _OF_ALL

    @property
    def may_end_a_batch(self) -> bool:
        """Whether the actor has several tasks, any of which may be the last."""
        return len(self.what.actor.tasks) > 1

    @property
    def holds(self) -> set[str]:
        """Items that a transaction holds from this step on."""
        return keys_of(self.what.request) if isinstance(self.what, Call) and self.fate is Fate.UNDER_WAY else set()
