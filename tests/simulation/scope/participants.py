"""Who takes part in a schedule, and what each of them may do next."""

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
    """What becomes of a call. All but the first are faults."""

    FINE = "answered"
    KILLED_BEFORE = "its process is killed before it"
    KILLED_AFTER = "applied, and its process is killed"
    ANSWER_LOST = "applied, and the answer is lost, so that the SDK sends it again"
    UNANSWERED = "not answered, however often the SDK sends it"
    CUT_OFF = "not answered, like every call to the table from then on"
    BUSY = "in conflict with another transaction, like every transaction from then on"
    UNDER_WAY = "applied much later than the client waits for it"


#: Those that befall an actor, and not only one of its calls.
LASTING: Final = frozenset({Fate.CUT_OFF, Fate.BUSY})
_OF_ALL: Final = LASTING | {Fate.KILLED_BEFORE, Fate.KILLED_AFTER}


@dataclass(slots=True, eq=False)
class Actor:
    """Whoever makes calls: an invocation, or a person's tool.

    Its label tells what it is about, not when it came, so that two orders of the same are one.
    """

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
    tasks: dict[Task, int] = field(default_factory=dict)
    #: By task, all that it has been answered, and when: where it stands, since it follows from that.
    answers: dict[int, bytes] = field(default_factory=dict)
    calls: int = 0
    lasting: set[Fate] = field(default_factory=set)
    #: The call that was last left unanswered.
    unanswered: object = None
    #: What a transaction stood in the way of: operation, keys, and whether the SDK sent it once more. The same again
    #: finds what it would have found if it had been held instead.
    refused: set[tuple[str, frozenset[str], bool]] = field(default_factory=set)

    def number_of(self, task: Task) -> int:
        """They come in the same order whatever happens meanwhile."""
        return self.tasks.setdefault(task, len(self.tasks))


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
        if self.operation != TRANSACTION or self.again or self.actor.gives_up:
            found.append(Fate.UNANSWERED)
        if self.service == "dynamodb" and not self.actor.gives_up:
            found.append(Fate.CUT_OFF)
        if self.operation == TRANSACTION:
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

    what: Call | Late
    fate: Fate = Fate.FINE

    @property
    def cost(self) -> int:
        """In faults."""
        return 0 if self.fate is Fate.FINE else 1

    @property
    def name(self) -> Step:
        """The same wherever it can be taken."""
        task = self.what.actor.number_of(self.what.task) if isinstance(self.what, Call) else _BY_THE_SERVICE
        return self.what.actor.label, task, self.fate.value

    @property
    def of_all(self) -> bool:
        """Whether it concerns the whole of its actor, and not one task."""
        return self.fate in _OF_ALL

    @property
    def may_end_a_batch(self) -> bool:
        """Whichever of several tasks is the last."""
        return len(self.what.actor.tasks) > 1

    @property
    def holds(self) -> set[str]:
        """Items that a transaction holds from then on."""
        return keys_of(self.what.request) if isinstance(self.what, Call) and self.fate is Fate.UNDER_WAY else set()
