"""Publish advances a flow when nodes of it have ended."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from tidemill.application.dispatch.owed import Kind, Work
from tidemill.application.dispatch.reactions import PublishStep, Step
from tidemill.domain.dispatch.stream_change import Change
from tidemill.domain.flows.ended_nodes import EndedNodes, ended_nodes

if TYPE_CHECKING:
    from tidemill.application.flows.flow_advance import FlowAdvance


class FlowReaction:
    """`Reaction`: one step for each flow. `flows` is called for the first node that ends: most processes need none."""

    def __init__(self, flows: "Callable[[], FlowAdvance]") -> None:
        self._flows = flows

    def __call__(self, changes: Sequence[Change]) -> Iterator[Step]:
        for (tenant, flow_id), ended in ended_nodes(changes).items():
            work = Work(kind=Kind.FLOW, tenant=tenant, name=flow_id)
            yield Step(ended.sequence, PublishStep.FLOW, work, partial(self._advance, tenant, flow_id, ended))

    def _advance(self, tenant: str, flow_id: str, ended: EndedNodes) -> None:
        self._flows().advance(tenant, flow_id, ended.names, redriven=ended.redriven)
