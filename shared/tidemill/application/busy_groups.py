"""The groups of nodes that others keep busy while a flow starts or redrives the jobs of its nodes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tidemill.application.flow_nodes import NodeDocuments
from tidemill.domain.errors import TransactionConflictError
from tidemill.domain.flows import NodeVerdict
from tidemill.domain.job import Job


@dataclass(frozen=True, slots=True)
class Busy:
    """A try takes a second, so no further node of a group is tried that was busy."""

    #: After so many groups that were busy, no further group is tried.
    most: int
    nodes: set[int] = field(default_factory=set)
    groups: set[str] = field(default_factory=set)

    def leaves(self, group: str | None) -> bool:
        """Whether no job of this group is tried any more."""
        return group is not None and (group in self.groups or len(self.groups) >= self.most)

    def note(self, number: int, group: str | None) -> None:
        """The write of the job of this node was refused: others keep it busy, or its group if it has one."""
        self.nodes.add(number)
        if group is not None:
            self.groups.add(group)


def carry_out(documents: NodeDocuments, number: int, due: NodeVerdict, busy: Busy) -> Job | None:
    """As `NodeDocuments.carry_out`, unless the group of the node is busy."""
    # A mark takes part in no group.
    group = documents.group(number) if due is NodeVerdict.START else None
    if busy.leaves(group):
        busy.nodes.add(number)
        return None
    try:
        return documents.carry_out(number, due)
    except TransactionConflictError:
        busy.note(number, group)
        return None


def by_group(numbers: Sequence[int], group_of: Callable[[int], str | None]) -> list[list[int]]:
    """Those of one group together: at once, they would keep each other busy."""
    together: dict[str | int, list[int]] = {}
    for number in numbers:
        together.setdefault(group_of(number) or number, []).append(number)
    return list(together.values())
