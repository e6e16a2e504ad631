"""Advance flows: nodes have ended, so others may start. For publish, from its stream records.

What would take too long is left to the flow's own job, which is asked to look. Safe to repeat, and at once by many.
"""

from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from tidemill.application.flows.busy_groups import Busy, by_group, carry_out
from tidemill.application.flows.cursor_mover import CursorMover
from tidemill.application.flows.flow_nodes import FlowParts, NodeDocuments, TooLargeError
from tidemill.domain.flows.flow_graph import LAST
from tidemill.domain.flows.flows import NodeVerdict, is_flow, over_age, starts_nodes
from tidemill.domain.job import Job

#: The work of one call: so many nodes may follow, and so many documents may be read. It takes a second or two.
MOST_FOLLOWING: Final = 200
MOST_READ: Final = 1_000
_AT_ONCE: Final = 8
#: At most so many nodes of one group start in an advance. The others wait behind these in any case.
MOST_OF_GROUP: Final = 25
#: After so many groups that others kept busy, for a second each, one call tries no further group.
MOST_BUSY: Final = 8


class FlowAdvance:
    """Each call reads the document of the flow first, since only a flow that is alive starts nodes."""

    def __init__(self, parts: FlowParts) -> None:
        self._parts = parts

    def ask_to_look(self, tenant: str, flow_id: str) -> None:
        """Ask the flow to look at its nodes."""
        self._parts.ask_to_look(tenant, flow_id)

    def advance(self, tenant: str, flow_id: str, ended: Collection[str], *, redriven: bool = False) -> list[Job]:
        """Start what follows the nodes of these names, if their parents let it; return the jobs that it started.

        `redriven`: one of them had been redriven, so the nodes behind it may have ended before it.
        """
        flow = self._parts.flows.get(tenant, flow_id)
        if flow is None or not is_flow(flow) or not starts_nodes(flow) or over_age(flow, now=self._parts.clock()):
            return []
        documents = NodeDocuments(flow, self._parts, most=MOST_READ)
        graph = documents.nodes.graph
        numbers = {number for name in ended if (number := graph.numbers.get(name)) is not None}
        following = {child for number in numbers for child in graph.children_of(number)}
        try:
            started, look = self._start(documents, numbers, following)
        except TooLargeError:
            started, look = [], True
        if look or redriven:
            self._parts.ask_to_look(tenant, flow_id)
        return started

    def _start(
        self, documents: NodeDocuments, ended: Collection[int], following: Collection[int]
    ) -> tuple[list[Job], bool]:
        """The jobs that started, and whether the flow is to look at its nodes."""
        if len(following) > MOST_FOLLOWING:
            raise TooLargeError
        flow, graph = documents.flow, documents.nodes.graph
        mover = CursorMover(documents, self._parts.flows)
        cursors = self._parts.flows.cursors(flow, [node for node in following if len(graph.parents_of(node)) > 1])
        due = {node: mover.due(node, cursors.get(node), ended=ended) for node in sorted(following)}
        acts = [node for node, said in due.items() if said is not NodeVerdict.WAIT and node != LAST]
        chains = by_group(acts, lambda node: documents.group(node) if due[node] is NodeVerdict.START else None)
        busy = Busy(most=MOST_BUSY)

        def act_in_order(chain: Sequence[int]) -> list[tuple[NodeVerdict, Job | None]]:
            return [(due[node], carry_out(documents, node, due[node], busy)) for node in chain[:MOST_OF_GROUP]]

        with ThreadPoolExecutor(_AT_ONCE) as pool:
            made = [each for chain in pool.map(act_in_order, chains) for each in chain]
        # It was blocked already, so no change of its document tells the nodes behind it that they may have ended.
        stays = any(job is None and said is NodeVerdict.BLOCK for said, job in made)
        left = bool(busy.nodes) or any(len(chain) > MOST_OF_GROUP for chain in chains)
        started = [job for _, job in made if job and not job.state.terminal]
        return started, left or stays or due.get(LAST) is NodeVerdict.START
