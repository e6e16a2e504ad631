"""The place of a job in a flow. On the document of each job that is a node of a flow."""

from enum import StrEnum
from typing import Final

from msgspec import Struct

#: The group of a node without one, as the table has it. So no node may name it as its group.
NODE_GROUP: Final = "!node"


class Mark(StrEnum):
    """Why the document of a node is cancelled although no caller cancelled it: no job was started."""

    #: A parent failed or was skipped, and the edge says that the node is not needed then. Final.
    SKIPPED = "skipped"
    #: A parent failed. Replaced by a start once the parents have succeeded after a redrive.
    BLOCKED = "blocked"


class FlowPlace(Struct, frozen=True, kw_only=True):
    """`id` is the id of the job of the flow, and `node` the name of the node."""

    id: str
    node: str
    #: None for a job. Otherwise the document only records that the node has none.
    mark: Mark | None = None


class FlowState(Struct, frozen=True, kw_only=True):
    """What the document of the job of a flow counts."""

    #: How often it was asked to look at its nodes since it may have looked.
    looks: int = 0
    #: How often nodes were added.
    additions: int = 0
