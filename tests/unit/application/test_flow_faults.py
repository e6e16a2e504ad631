"""A flow with thousands of wrong nodes has its answer in time."""

import pytest

from tests.support.builders import a_job_type
from tests.support.in_memory_jobs import InMemoryJobs
from tidemill.application.flows import start_flow
from tidemill.application.job_types import JobType, JobTypes
from tidemill.domain.errors import InvalidPayloadError
from tidemill.domain.flows import Flow, Node
from tidemill.domain.submission import Submission
from tidemill.names import FLOW_TYPE


class Asked(JobTypes):
    """Counts how often it looked for a type. One that it lacks takes milliseconds."""

    count = 0

    def get(self, name: str) -> JobType:
        self.count += 1
        return super().get(name)


@pytest.mark.parametrize(("wrong", "listed", "more"), [(99, 99, False), (100, 100, False), (101, 100, True)])
def test_no_more_nodes_are_checked_than_an_answer_lists(wrong: int, listed: int, more: bool) -> None:
    types = Asked({FLOW_TYPE: a_job_type(name=FLOW_TYPE)})
    submit = InMemoryJobs().submit()
    submit.job_types = types
    nodes = [Node(str(number), Submission(type="x")) for number in range(wrong)]

    with pytest.raises(InvalidPayloadError) as refused:
        start_flow(Flow(nodes=nodes), submit, tenant="t", trace="pia")

    assert types.count <= 101
    faults = refused.value.faults
    assert [fault.path for fault in faults[:2]] == ["/nodes/0/type", "/nodes/1/type"]
    assert len(faults) == listed + more
    assert (faults[-1].message == "there are more faults") is more


def test_thousands_of_nodes_of_an_unknown_type_take_as_long_as_a_hundred() -> None:
    types = Asked({FLOW_TYPE: a_job_type(name=FLOW_TYPE)})
    submit = InMemoryJobs().submit()
    submit.job_types = types

    with pytest.raises(InvalidPayloadError, match="there are more faults"):
        start_flow(
            Flow(nodes=[Node(str(number), Submission(type="x")) for number in range(9_000)]),
            submit,
            tenant="t",
            trace="pia",
        )

    assert types.count == 101
