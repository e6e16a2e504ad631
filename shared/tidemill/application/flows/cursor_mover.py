"""Moves the cursor of one node past the parents that have ended, and says what is due once all have.

Each step holds against any other caller: see `tidemill.domain.flows.flow_cursor`.
"""

from collections.abc import Collection, Sequence
from typing import Final

from msgspec import Struct

from tidemill.application.flows.flow_nodes import NodeDocuments, in_parts
from tidemill.application.ports import FlowStore
from tidemill.domain.flows.flow_cursor import ALL_ENDED, Cursor
from tidemill.domain.flows.flow_graph import LAST, Parent
from tidemill.domain.flows.flows import NodeVerdict, through, verdict

#: The most items of one read.
_READ_AT_ONCE: Final = 100


class CursorMover:
    """For the nodes of one flow."""

    def __init__(self, documents: NodeDocuments, store: FlowStore) -> None:
        self._documents = documents
        self._store = store

    def due(self, node: int, cursor: Cursor | None, *, ended: Collection[int] | None) -> NodeVerdict:
        """What is due for the node, as far as these parents concern it; `WAIT` if nothing is.

        A node with one parent needs no cursor. `ended` are the parents whose ends are the reason to ask, by number.
        With None, the node is looked at in any case, and the last node from its first parent on.
        """
        parents = self._documents.nodes.graph.parents_of(node)
        positions = None if ended is None else [at for at, each in enumerate(parents) if each.number in ended]
        anew, cursor = node == LAST and ended is None, cursor or Cursor()
        move = _Move(
            node=node,
            by=min(positions, default=None) if positions else None,
            additions=self._documents.nodes.additions if node == LAST else 0,
        )
        while cursor.moves_on(positions, additions=move.additions):
            if cursor.at == ALL_ENDED and not self._documents.may_start(node):
                return NodeVerdict.WAIT
            anew = anew or cursor.at == ALL_ENDED or cursor.additions != move.additions
            at, clean = self._first_pending(parents, *((0, True) if anew else (cursor.at, cursor.clean)))
            if at == len(parents) and (clean or node == LAST):
                return NodeVerdict.START
            stands = at == cursor.at and not anew
            if at == len(parents):
                # From now on each end counts. So the reads that follow see the last end of each parent, or the advance
                # of that end comes here again.
                at, stands = ALL_ENDED, cursor.at == ALL_ENDED or len(parents) == 1
            moved = cursor if stands else self._moved(move, cursor, at, clean=clean)
            if moved is None:
                cursor = self._store.cursors(self._documents.flow, [node])[node]
                continue
            cursor, positions = moved, None
            # After the write, so that either this read finds the end of the parent, or its advance the cursor.
            said = self._said_now(parents if at == ALL_ENDED else [parents[at]])
            if at == ALL_ENDED and said is not NodeVerdict.WAIT:
                return said
            if at != ALL_ENDED and said is NodeVerdict.WAIT:
                return said
            anew = False
        return NodeVerdict.WAIT

    def _first_pending(self, parents: Sequence[Parent], at: int, clean: bool) -> tuple[int, bool]:  # noqa: FBT001 - of the cursor
        """The position of the first parent that has not ended, and whether all before it let the node start."""
        for some in in_parts(range(at, len(parents)), _READ_AT_ONCE):
            self._documents.read([parents[position].number for position in some])
            for position in some:
                parent = parents[position]
                said = through(parent.on_failure, self._documents.resolution(parent.number))
                if said is NodeVerdict.WAIT:
                    return position, clean
                clean = clean and said is NodeVerdict.START
        return len(parents), clean

    def _said_now(self, parents: Sequence[Parent]) -> NodeVerdict:
        """What these parents say, read anew."""
        for some in in_parts(parents, _READ_AT_ONCE):
            self._documents.read([parent.number for parent in some], again=True)
        return verdict(through(each.on_failure, self._documents.resolution(each.number)) for each in parents)

    def _moved(self, move: "_Move", read: Cursor, at: int, *, clean: bool) -> Cursor | None:
        cursor = Cursor(at=at, by=move.by, clean=clean, additions=move.additions, version=read.version)
        return self._store.move(self._documents.flow, move.node, cursor)


class _Move(Struct, frozen=True, kw_only=True):
    node: int
    #: The parent whose end is the reason, by its position.
    by: int | None
    additions: int
