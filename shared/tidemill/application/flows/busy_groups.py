"""The groups of nodes that others keep busy while a flow starts or redrives the jobs of its nodes."""

from collections.abc import Callable, Sequence

from msgspec import Struct, field

from tidemill.application.flows.flow_nodes import NodeDocuments
from tidemill.domain.errors import TransactionConflictError
from tidemill.domain.flows.flows import NodeVerdict
from tidemill.domain.job import Job


class Busy(Struct, frozen=True):
    """A try takes a second, so no further node of a group is tried that was busy."""

    #: After so many groups that were busy, no further group is tried.
    most: int
    nodes: set[int] = field(default_factory=set)
    groups: set[str] = field(default_factory=set)

    def leaves(self, number: int, group: str | None) -> bool:
        """Whether this node is left for later, because no job of its group is tried any more. It is noted then."""
        leaves = group is not None and (group in self.groups or len(self.groups) >= self.most)
        if leaves:
            self.nodes.add(number)
        return leaves

    def written(self, number: int, group: str | None, write: Callable[[], Job | None]) -> Job | None:
        """Write the job of this node. If that is refused because others keep it busy, note it, and its group."""
        try:
            return write()
        except TransactionConflictError:
            self.nodes.add(number)
            if group is not None:
                self.groups.add(group)
            return None


def carry_out(documents: NodeDocuments, number: int, due: NodeVerdict, busy: Busy) -> Job | None:
    """Carry the verdict out with `NodeDocuments.carry_out`, unless the group of the node is busy."""
    # A mark takes part in no group.
    group = documents.group(number) if due is NodeVerdict.START else None
    if busy.leaves(number, group):
        return None
    return busy.written(number, group, lambda: documents.carry_out(number, due))


def by_group(numbers: Sequence[int], group_of: Callable[[int], str | None]) -> list[list[int]]:
    """Put the nodes of one group together: at the same time, they would keep each other busy."""
    together: dict[str | int, list[int]] = {}
    for number in numbers:
        together.setdefault(group_of(number) or number, []).append(number)
    return list(together.values())
