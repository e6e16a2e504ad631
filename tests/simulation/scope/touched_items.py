"""The items that one step of a schedule touches. They decide whether two steps are independent."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

#: All queues and the free workers: together they decide the next delivery.
QUEUES: Final = "queues"
#: Stands for the reads of a call that names no item.
ANYTHING: Final = "anything"
#: The actor, the number of its task, and the fate.
Step = tuple[str, int, str]


@dataclass(frozen=True, slots=True)
class Footprint:
    actor: str
    #: -1 for a step of a service.
    task: int
    read: frozenset[str]
    written: frozenset[str]
    #: Whether it affects the whole actor, not one task.
    of_all: bool

    def independent_of(self, other: "Footprint") -> bool:
        """Whether both orders of the two steps lead to the same state."""
        if self.actor == other.actor and (self.task == other.task or self.of_all or other.of_all):
            return False
        shared = (self.written & (other.read | other.written)) | (other.written & self.read)
        if self.actor == other.actor:
            # The last task of a batch, in either order, sends the response of the batch.
            shared -= {QUEUES}
        return not shared and ANYTHING not in self.read | other.read

    def merged_with(self, other: "Footprint | None") -> "Footprint":
        """The union, for a step with several results."""
        if other is None:
            return self
        return Footprint(self.actor, self.task, self.read | other.read, self.written | other.written, self.of_all)


#: A sleep set: steps that need not be taken, since each was tried before an independent step.
Sleeping = Mapping[Step, Footprint]


def keys_of(request: Mapping[str, Any]) -> set[str]:
    """The keys of the items that a request names."""
    writes = [write for entry in request.get("TransactItems", ()) for write in entry.values()] or [request]
    keys = [write.get("Key") or write.get("Item") for write in writes]
    return {key["pk"]["S"] for key in keys if key}
