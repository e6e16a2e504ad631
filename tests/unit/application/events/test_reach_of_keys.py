"""No text of a caller leads to an id that the engine derives, nor to that of another kind of submission."""

from collections.abc import Callable
from typing import Any, Final

from hypothesis import example, given
from hypothesis import strategies as st

from tests.support.builders import NOW, a_job, a_job_type
from tests.support.in_memory_jobs import InMemoryJobs
from tidemill.application.batches.batches import open_batch
from tidemill.application.corrections.undo import undo_id
from tidemill.application.event_types import EventSource, EventType
from tidemill.application.events.events import publish
from tidemill.application.events.published_records import publish_record
from tidemill.application.events.replay import delivery_id
from tidemill.application.flows.flows import start_flow
from tidemill.application.job_types import JobTypes
from tidemill.application.submission.job_ids import callback_id, follow_up_id, node_job_id
from tidemill.application.submission.submit import Submit
from tidemill.application.waiting.periodic import Call
from tidemill.application.waiting.periodic import submission as of_schedule
from tidemill.domain.batches.batches import ON_COMPLETE, Batch
from tidemill.domain.events.events import Event
from tidemill.domain.events.source_records import SnsRecord, SourceKind
from tidemill.domain.flows.flows import Flow, Node
from tidemill.domain.operations.runtime_configuration import RuntimeConfiguration
from tidemill.domain.submission.submission import DerivedKey, Submission
from tidemill.names import BATCH_TYPE, EVENT_TYPE, FLOW_TYPE, SCHEDULE_TENANT

TYPE: Final = a_job_type(name="daily")
TENANTS: Final = ("t", SCHEDULE_TENANT)
EVENT: Final = EventType(
    name="order.placed", version=1, read=lambda _: {}, schema=dict, written_schema=dict, names={}, file="f", line=1
)
SOURCE: Final = EventSource(
    name="orders",
    kind=SourceKind.SNS,
    event=EVENT.name,
    version=1,
    function=lambda _: {},
    written=lambda data: data,
    schema=None,
    file="f",
    line=1,
)
RECORDS: Final = [SnsRecord(id=id_, topic="topic", at=NOW, subject=None, message="") for id_ in ("1", "x" * 300)]
TIME: Final = "2026-11-29T00:00:00Z"


def _submit() -> Submit:
    submit = InMemoryJobs().submit()
    types = [TYPE, *(a_job_type(name=name) for name in (EVENT_TYPE, BATCH_TYPE, FLOW_TYPE))]
    submit.job_types = JobTypes({each.name: each for each in types}, (), events={(EVENT.name, 1): EVENT})
    return submit


def _job(tenant: str, **named: Any) -> str:
    return _submit().prepare(Submission(type=TYPE.name, **named), tenant=tenant, trace="").id


def _event(tenant: str, key: str) -> str:
    return publish(Event(type=EVENT.name, key=key), _submit(), tenant=tenant, trace="").job.id


def _batch(tenant: str, key: str) -> str:
    batch = Batch(on_complete=Submission(type=TYPE.name), key=key)
    return open_batch(batch, _submit(), tenant=tenant, trace="").job.id


def _flow(tenant: str, key: str) -> str:
    flow = Flow(nodes=[Node("n", Submission(type=TYPE.name))], key=key)
    return start_flow(flow, _submit(), tenant=tenant, trace="").job.id


#: The id of the job of a submission in which a caller names the text.
BY_CALLER: Final[dict[str, Callable[[str, str], str]]] = {
    "job": lambda tenant, text: _job(tenant, key=text),
    "event": _event,
    "batch": _batch,
    "flow": _flow,
}


def _of_schedule() -> list[DerivedKey]:
    found = [
        of_schedule(Call(scheduled_at=TIME, requested=requested), TYPE, RuntimeConfiguration(), now=NOW)
        for requested in (False, True)
    ]
    return [one for one in found if isinstance(one, DerivedKey)]


def _derived(tenant: str) -> set[str]:
    job = a_job(tenant=tenant, id="p")
    published = [publish_record(record, SOURCE, _submit(), tenant=tenant, trace="") for record in RECORDS]
    ids = {one.job.id for one in published if one}
    if tenant == SCHEDULE_TENANT:
        ids |= {_submit().prepare(one, tenant=tenant, trace="").id for one in _of_schedule()}
    of_job: list[Any] = [undo_id(job), delivery_id(job, TYPE.name, "n")]
    return {*ids, *of_job, follow_up_id(job, 0), node_job_id(job, "n"), callback_id(job, ON_COMPLETE)}


DERIVED: Final = {tenant: _derived(tenant) for tenant in TENANTS}
_OF_CALLBACK: Final = f"p/{NOW.isoformat()}/{ON_COMPLETE}"
_OF_RECORDS: Final = [f"orders/{RECORDS[0].identity}", f"orders/{'0' * 64}"]
#: What the engine makes its keys of.
PIECES: Final = [
    *("event/", "batch/", "flow/", "/", "order.placed/", "orders/", _OF_CALLBACK, *_OF_RECORDS),
    *(one.key or "" for one in _of_schedule()),
    *(f"daily catch-up {TIME}", TIME, "[", " ", "k"),
]
TEXTS: Final = st.lists(st.sampled_from(PIECES) | st.text(max_size=3), min_size=1, max_size=4).map("".join).filter(bool)


def test_each_kind_of_derived_id_is_covered() -> None:
    assert [len(DERIVED[tenant]) for tenant in TENANTS] == [7, 9]


@given(st.sampled_from(TENANTS), TEXTS)
@example("t", f"batch/{_OF_CALLBACK}")
@example("t", _OF_CALLBACK)
@example("t", _OF_RECORDS[0])
@example(SCHEDULE_TENANT, f"daily {TIME}")
def test_no_text_of_a_caller_leads_to_an_id_that_the_engine_derives(tenant: str, text: str) -> None:
    assert not {made(tenant, text[:200]) for made in BY_CALLER.values()} & DERIVED[tenant]


@given(st.sampled_from(TENANTS), TEXTS, st.sampled_from(["", *PIECES]))
@example("t", "order.placed/k", "event/")
def test_texts_of_two_kinds_of_submissions_never_lead_to_one_job(tenant: str, text: str, before: str) -> None:
    each = {(kind, made(tenant, one[:200])) for kind, made in BY_CALLER.items() for one in (text, before + text)}
    assert len({job_id for _, job_id in each}) == len(each)
