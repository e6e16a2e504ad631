"""The results of the parents of a node, for its handler: read when it asks for them, and not all at once."""

import json
from collections.abc import ItemsView, Iterator, Mapping, ValuesView
from typing import Any, Final

from tidemill.application.flows.flow_graphs import FlowGraphs
from tidemill.application.flows.flow_nodes import in_parts
from tidemill.application.ports import FlowStore
from tidemill.application.submission.job_ids import node_job_id
from tidemill.domain.errors import PermanentJobError
from tidemill.domain.job import Job

_READ_AT_ONCE: Final = 100


class ParentResults(Mapping[str, Any]):
    """By the name of the parent, in the order of `after`. None for one that failed or was skipped.

    Reads raise `PermanentJobError` once the flow is deleted: the node was redriven long after its flow had ended.
    """

    def __init__(self, node: Job, flows: FlowStore, graphs: FlowGraphs) -> None:
        self._node = node
        self._flows = flows
        self._graphs = graphs
        self._ids: dict[str, str] | None = None

    def __getitem__(self, name: str) -> Any:
        return next(self._read([self._job_ids[name]]))

    def __iter__(self) -> Iterator[str]:
        return iter(self._job_ids)

    def __len__(self) -> int:
        return len(self._job_ids)

    def items(self) -> ItemsView[str, Any]:
        return _Items(self)

    def values(self) -> ValuesView[Any]:
        return _Values(self)

    def in_order(self) -> Iterator[tuple[str, Any]]:
        for some in in_parts(list(self._job_ids.items()), _READ_AT_ONCE):
            names, job_ids = zip(*some, strict=True)
            yield from zip(names, self._read(job_ids), strict=True)

    def _read(self, job_ids: "tuple[str, ...] | list[str]") -> Iterator[Any]:
        jobs = {job.id: job for job in self._flows.get_many([(self._node.tenant, each) for each in job_ids])}
        for job_id in job_ids:
            job = jobs.get(job_id)
            yield None if job is None or job.result is None else json.loads(job.result)

    @property
    def _job_ids(self) -> dict[str, str]:
        if self._ids is None:
            self._ids = self._found()
        return self._ids

    def _found(self) -> dict[str, str]:
        place = self._node.flow
        if place is None:
            return {}
        flow = self._flows.get(self._node.tenant, place.id)
        # A later flow may have replaced it under its key.
        if flow is None or node_job_id(flow, place.node) != self._node.id:
            raise PermanentJobError(
                f"the flow {place.id} of this node is deleted, so the results of its parents cannot be found"
            )
        graph = self._graphs.of(flow).graph
        parents = (graph.names[each.number] for each in graph.parents[graph.numbers[place.node]])
        return {name: node_job_id(flow, name) for name in parents}


class _Items(ItemsView[str, Any]):
    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return self._mapping.in_order()  # type: ignore[attr-defined,no-any-return]  # it is the above


class _Values(ValuesView[Any]):
    def __iter__(self) -> Iterator[Any]:
        return (result for _, result in self._mapping.in_order())  # type: ignore[attr-defined]  # it is the above
