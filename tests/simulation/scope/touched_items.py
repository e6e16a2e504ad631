"""What one step of a schedule has touched, by which two are told apart that can be taken in either order."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

#: All queues, and the workers that are free: who is delivered what hangs on both.
QUEUES: Final = "queues"
#: Whatever a call reads that names no item.
ANYTHING: Final = "anything"
#: Who takes it, which of their tasks, and to what end.
Step = tuple[str, int, str]


@dataclass(frozen=True, slots=True)
class Footprint:
    actor: str
    #: One below the first for what a service does.
    task: int
    read: frozenset[str]
    written: frozenset[str]
    #: Whether it concerns the whole of its actor, and not one task.
    of_all: bool

    def independent_of(self, other: "Footprint") -> bool:
        """Whether the two can be taken in either order, and come to the same."""
        if self.actor == other.actor and (self.task == other.task or self.of_all or other.of_all):
            return False
        shared = (self.written & (other.read | other.written)) | (other.written & self.read)
        if self.actor == other.actor:
            # Whichever task of a batch ends last has it answered.
            shared -= {QUEUES}
        return not shared and ANYTHING not in self.read | other.read

    def merged_with(self, other: "Footprint | None") -> "Footprint":
        """Of a step that can go several ways."""
        if other is None:
            return self
        return Footprint(self.actor, self.task, self.read | other.read, self.written | other.written, self.of_all)


#: Steps that need not be taken: each was tried before something that it has nothing to do with.
Sleeping = Mapping[Step, Footprint]


def keys_of(request: Mapping[str, Any]) -> set[str]:
    """Of the items that a request names."""
    writes = [write for entry in request.get("TransactItems", ()) for write in entry.values()] or [request]
    keys = [write.get("Key") or write.get("Item") for write in writes]
    return {key["pk"]["S"] for key in keys if key}
