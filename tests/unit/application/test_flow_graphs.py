"""The graphs of flows that an environment keeps."""

from dataclasses import dataclass, field

from tests.support.builders import a_job
from tests.support.in_memory_flows import InMemoryFlows, nodes
from tidemill.application.flow_graphs import FlowGraphs
from tidemill.domain.job import Job
from tidemill.names import FLOW_TYPE


@dataclass
class Loads(InMemoryFlows):
    """Counts what is loaded."""

    loaded: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(nodes(a=[], b=["a"]))

    def load(self, job: Job) -> str:
        self.loaded.append(job.id)
        return super().load(job)


def test_the_graphs_of_the_last_four_flows_are_kept() -> None:
    store = Loads()
    graphs = FlowGraphs(store=store, payloads=store)
    flows = {name: a_job(id=name, type=FLOW_TYPE, payload=store.flow.payload) for name in "12345"}

    for name in "12341512":
        graphs.of(flows[name])

    # Only the second flow had to go, for the fifth.
    assert store.loaded == [*"12345", "2"]
