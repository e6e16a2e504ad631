"""What is refused of the nodes of a flow. One with thousands of wrong nodes has its answer in time."""

from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import a_job_type
from tests.support.in_memory_jobs import InMemoryJobs
from tidemill.application.flows.flows import FlowControl, start_flow
from tidemill.application.job_types import JobType, JobTypes
from tidemill.domain.errors import Fault, InvalidPayloadError
from tidemill.domain.flows.flows import Edge, Flow, Node
from tidemill.domain.records import replace
from tidemill.domain.submission.submission import Submission
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


def _asked(type_: Any = "x", name: Any = "b", after: Any = ()) -> list[Node]:
    return [Node("a", Submission(type="x")), Node(name, Submission(type=type_), after=after)]


@pytest.mark.parametrize(
    ("wrong", "path", "message"),
    [
        (_asked(name=7), "name", "must be text"),
        (_asked(after="a"), "after", "must be a list of names and edges"),
        (_asked(after=None), "after", "must be a list of names and edges"),
        (_asked(after=[7]), "after", "must be a list of names and edges"),
        (_asked(after=["a", None]), "after", "must be a list of names and edges"),
        (_asked(7), "type", "must be text"),
    ],
)
def test_a_program_may_give_no_other_types(wrong: list[Node], path: str, message: str) -> None:
    control = FlowControl(None, None, pause_below=lambda _longest: None)  # type: ignore[arg-type]  # it asks neither

    for act in (
        lambda: start_flow(Flow(nodes=wrong), InMemoryJobs().submit(), tenant="t", trace="pia"),
        lambda: control.add_nodes("t", "flow", wrong),
    ):
        with pytest.raises(InvalidPayloadError) as refused:
            act()
        assert refused.value.faults == (Fault(f"/nodes/1/{path}", message),)


def test_a_node_may_not_be_of_a_type_whose_jobs_are_unique() -> None:
    types = (a_job_type(name=FLOW_TYPE), a_job_type(name="x"), replace(a_job_type(name="u"), unique=timedelta(hours=1)))

    with pytest.raises(InvalidPayloadError) as refused:
        start_flow(Flow(nodes=_asked("u")), InMemoryJobs().submit(*types), tenant="t", trace="pia")

    (fault,) = refused.value.faults
    assert fault.path == "/nodes/1/type"
    assert "use a type without unique_seconds" in fault.message


def test_the_key_of_a_flow_is_text() -> None:
    wrong: Any = 7

    with pytest.raises(InvalidPayloadError) as refused:
        start_flow(Flow(nodes=_asked(), key=wrong), InMemoryJobs().submit(), tenant="t", trace="pia")

    assert refused.value.faults == (Fault("/idempotency_key", "must be text"),)


def test_a_node_follows_names_and_edges() -> None:
    flow = Flow(nodes=_asked(after=["a", Edge(node="a")]))

    with pytest.raises(InvalidPayloadError) as refused:
        start_flow(flow, InMemoryJobs().submit(), tenant="t", trace="pia")

    assert Fault("/nodes/1/after/1", "names the parent 'a' a second time") in refused.value.faults
