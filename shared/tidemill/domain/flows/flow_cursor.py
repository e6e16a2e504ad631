"""The cursor of a node: at which of its parents it waits. So a fan-in needs no counter, and no hot item. Pure.

A node waits for its parents one at a time, in the order of its list. Its cursor is written first, and the parent that
it names is read afterwards, consistently. So either that read finds the end of the parent, or the advance of that end
finds the cursor. Without a cursor, a node waits for its first parent.
"""

from collections.abc import Collection
from typing import Final

from msgspec import Struct

#: All parents had ended, and one of them had not succeeded. It may end once more, so each end counts now.
ALL_ENDED: Final = -1


class Cursor(Struct, frozen=True, kw_only=True):
    """The position in the list of parents, and who moved it there."""

    at: int = 0
    #: The parent whose end moved the cursor. If the move crashed before its read, the repeated record goes on.
    by: int | None = None
    #: Each parent before `at` lets the node start.
    clean: bool = True
    #: For the last node: how often nodes had been added. Each addition changes its list of parents.
    additions: int = 0
    #: The version that was read: fresh for each write, and None without an item.
    version: str | None = None

    def moves_on(self, ended: Collection[int] | None, *, additions: int) -> bool:
        """Whether the ends of these parents may concern the node. None: look in any case.

        Not if a caller that knew more additions has moved it: the look that follows an addition is still to come then.
        """
        if self.additions > additions:
            return False
        if ended is None or self.additions != additions or self.at == ALL_ENDED:
            return True
        return self.at in ended or self.by in ended
