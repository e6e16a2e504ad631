"""Arguments of a wrong type, which Python does not refuse: each is a fault with its path, and writes nothing."""

from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import a_job_type
from tests.support.in_memory_jobs import InMemoryJobs
from tidemill.application.batches.batches import open_batch
from tidemill.application.events.events import publication
from tidemill.application.flows.flows import start_flow
from tidemill.application.job_types import JobTypes
from tidemill.application.submission.submit_batch import submit_all
from tidemill.application.submission.validation import may_be_id
from tidemill.domain.batches.batches import Batch
from tidemill.domain.errors import InvalidPayloadError
from tidemill.domain.events.events import Event
from tidemill.domain.flows.flows import Edge, Flow, Node
from tidemill.domain.submission.submission import Submission, Unique
from tidemill.names import BATCH_TYPE, FLOW_TYPE

TYPES = (a_job_type(name="plain"), a_job_type(name=BATCH_TYPE), a_job_type(name=FLOW_TYPE))
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"type": 7}, "/type"),
    ({"type": None}, "/type"),
    ({"type": ["plain"]}, "/type"),
    ({"payload": 7}, "/payload"),
    ({"payload": {"a": {1}}}, "/payload"),
    ({"lane": "fast"}, "/lane"),
    ({"lane": 7}, "/lane"),
    ({"delay": 7}, "/delay_seconds"),
    ({"run_at": "2030-01-31T08:00:00Z"}, "/run_at"),
    ({"deadline": 7}, "/deadline"),
    ({"max_age": 7}, "/max_age_seconds"),
    ({"group": 7}, "/group"),
    ({"key": 7}, "/idempotency_key"),
    ({"key": b"k"}, "/idempotency_key"),
    ({"supersedes": 7}, "/supersedes"),
    ({"unique": timedelta(hours=1)}, "/unique"),
    ({"unique": Unique(period=7)}, "/unique/period_seconds"),  # type: ignore[arg-type]
    ({"unique": Unique(period=timedelta(hours=1), key=7)}, "/unique/key"),  # type: ignore[arg-type]
    ({"tags": 7}, "/tags"),
    ({"tags": None}, "/tags"),
    ({"tags": [7]}, "/tags"),
    ({"batch": 7}, "/batch"),
    ({"debounce": 7}, "/debounce_seconds"),
    ({"debounce": timedelta(0), "debounce_key": 7}, "/debounce_key"),
    ({"debounce": timedelta(0), "debounce_max": 7}, "/debounce_max_seconds"),
    ({"debounce": timedelta(0), "debounce_key": "k", "replace": ["payload"]}, "/replace"),
]
#: Members that a callback and a node may have, and one that they may not.
OF_LATER_JOBS = {"type", "key", "tags", "lane", "max_age"}


def a_submission(**asked: Any) -> Submission:
    return Submission(**{"type": "plain"} | asked)


def path_of(refused: object) -> str:
    assert isinstance(refused, InvalidPayloadError), refused
    (fault,) = refused.faults
    return fault.path


@pytest.mark.parametrize(("asked", "path"), WRONG)
def test_a_member_of_a_wrong_type_is_a_fault_with_its_path(asked: dict[str, Any], path: str) -> None:
    jobs = InMemoryJobs()
    submit = jobs.submit(*TYPES)

    with pytest.raises(InvalidPayloadError) as refused:
        submit(a_submission(**asked), tenant="t", trace="pia")
    assert path_of(refused.value) == path
    with pytest.raises(InvalidPayloadError) as refused:
        submit.prepare(a_submission(**asked), tenant="t", trace="pia")
    assert path_of(refused.value) == path
    wrong, right = submit_all(
        submit, [a_submission(**asked), a_submission()], tenant="t", trace="pia", overlap=1, together=None
    )
    assert path_of(wrong) == path
    assert not isinstance(right, Exception)


@pytest.mark.parametrize(
    ("asked", "path"), [each for each in WRONG if set(each[0]) <= {"type", "key", "tags", "lane", "max_age"}]
)
def test_so_is_one_of_a_callback_and_of_a_node(asked: dict[str, Any], path: str) -> None:
    submit = InMemoryJobs().submit(*TYPES)
    given = a_submission(**asked)

    with pytest.raises(InvalidPayloadError) as refused:
        open_batch(Batch(on_success=given), submit, tenant="t", trace="pia")
    assert path_of(refused.value) == f"/on_success{path}"
    with pytest.raises(InvalidPayloadError) as refused:
        start_flow(Flow(nodes=[Node("a", given)]), submit, tenant="t", trace="pia")
    assert path_of(refused.value) == f"/nodes/0{path}"


@pytest.mark.parametrize(
    ("node", "path"),
    [
        (Node(7, a_submission()), "/nodes/0/name"),  # type: ignore[arg-type]
        (Node("a", a_submission(), after=7), "/nodes/0/after"),  # type: ignore[arg-type]
        (Node("a", a_submission(), after=[7]), "/nodes/0/after"),  # type: ignore[list-item]
        (Node("a", a_submission(), after="b"), "/nodes/0/after"),
        (Node("a", a_submission(), after=[Edge(node="b")]), "/nodes/0/after/0"),
    ],
)
def test_a_node_has_a_name_and_a_list_of_parents(node: Node, path: str) -> None:
    with pytest.raises(InvalidPayloadError) as refused:
        start_flow(Flow(nodes=[node]), InMemoryJobs().submit(*TYPES), tenant="t", trace="pia")
    assert path_of(refused.value) == path


def test_the_key_and_the_tags_of_a_batch_and_of_a_flow_are_texts() -> None:
    submit = InMemoryJobs().submit(*TYPES)
    wrong: list[tuple[dict[str, Any], str]] = [({"key": 7}, "/idempotency_key"), ({"tags": 7}, "/tags")]
    for asked, path in wrong:
        with pytest.raises(InvalidPayloadError) as refused:
            open_batch(Batch(on_success=a_submission(), **asked), submit, tenant="t", trace="pia")
        assert path_of(refused.value) == path
        with pytest.raises(InvalidPayloadError) as refused:
            start_flow(Flow(nodes=[Node("a", a_submission())], **asked), submit, tenant="t", trace="pia")
        assert path_of(refused.value) == path


@pytest.mark.parametrize("asked", [{"type": ["a"]}, {"type": "a", "version": [1]}, {"type": "a", "version": "1"}])
def test_an_event_has_a_name_and_a_number(asked: Any) -> None:
    with pytest.raises(InvalidPayloadError, match="must be text, and its version a whole number"):
        publication(Event(**asked), JobTypes({}))


def test_only_a_text_may_be_an_id() -> None:
    assert not may_be_id(7)
