"""The publication of an event: the job that it makes, the answer to a repeat, and each fault with its path."""

import json
from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import a_job, a_job_type
from tests.support.in_memory_jobs import InMemoryJobs
from tidemill.application.event_types import EventSource, EventType
from tidemill.application.events.events import consumer_jobs, publish
from tidemill.application.events.published_records import RecordRefusedError, event_key, publish_record
from tidemill.application.job_types import JobType, JobTypes
from tidemill.application.submission.job_ids import follow_up_id, keyed_job_id
from tidemill.application.submission.submit import Submit
from tidemill.domain.errors import (
    Fault,
    InvalidPayloadError,
    JobFileError,
    KeyReusedError,
    StoreUnavailableError,
    UnloadedJobTypeError,
)
from tidemill.domain.events.events import Consumption, Event
from tidemill.domain.events.source_records import SourceKind
from tidemill.domain.records import replace
from tidemill.names import EVENT_TYPE, Lane


def read(text: str) -> dict[str, list[Any]]:
    data = json.loads(text)
    if "order" not in data:
        raise InvalidPayloadError([Fault("/data/order", "is missing")])
    return {"order": [data["order"]]}


PLACED = EventType(
    name="order.placed", version=1, read=read, schema=dict, written_schema=dict, names={}, file="f", line=1
)
PLAIN = replace(a_job_type(name="mail"), consumes=(Consumption(type="order.placed"),))
RICH = replace(
    a_job_type(name="bill"),
    lane=Lane.BULK,
    blocks=True,
    max_age=timedelta(minutes=1),
    retention=timedelta(days=2),
    consumes=(Consumption(type="order.placed", version=1, filter={"order": ("7",)}),),
)
OTHER = replace(a_job_type(name="other"), consumes=(Consumption(type="order.paid"), Consumption(type="x", version=2)))
OPENING = a_job_type(name=EVENT_TYPE)


def submit(jobs: InMemoryJobs, *types: JobType, events: tuple[EventType, ...] = (PLACED,), faults: Any = ()) -> Submit:
    made = jobs.submit()
    made.job_types = JobTypes(
        {each.name: each for each in (OPENING, *types)},
        faults,
        events={(each.name, each.version): each for each in events},
    )
    return made


def an_event(**changes: Any) -> Event:
    return Event(**{"type": "order.placed", "data": {"order": "7"}} | changes)


def test_the_job_of_an_event_names_its_consumers_with_the_facts_of_their_types() -> None:
    jobs = InMemoryJobs()

    accepted = publish(an_event(), submit(jobs, PLAIN, RICH, OTHER), tenant="t", trace="pia")

    assert json.loads(accepted.job.payload.text or "") == {
        "type": "order.placed",
        "version": 1,
        "data": {"order": "7"},
        "consumers": [
            {"type": "bill", "lane": "bulk", "blocks": True, "max_age_seconds": 60, "retention_seconds": 172_800},
            {"type": "mail", "lane": "default"},
        ],
    }
    assert (accepted.job.type, accepted.job.group.key, accepted.replayed) == (EVENT_TYPE, None, False)


def test_a_consumer_whose_filter_does_not_match_gets_no_job() -> None:
    job = publish(an_event(data={"order": "8"}), submit(InMemoryJobs(), RICH), tenant="t", trace="pia").job
    assert json.loads(job.payload.text or "")["consumers"] == []


def test_an_event_has_its_own_keys_and_groups() -> None:
    job = publish(an_event(key="k", group="g"), submit(InMemoryJobs(), PLAIN), tenant="t", trace="pia").job
    assert (job.id, job.group.key) == (keyed_job_id("t", "event/order.placed/k"), f"{EVENT_TYPE}/g")


def test_each_event_without_a_key_is_another() -> None:
    jobs = InMemoryJobs()
    for _ in range(2):
        assert not publish(an_event(), submit(jobs), tenant="t", trace="pia").replayed
    assert len(jobs.writes) == 2


BROKEN = JobFileError("jobs.py:1: SyntaxError", names=("stock", "mail"))


@pytest.mark.parametrize(
    ("known", "refusal"),
    [
        ({"types": (PLAIN,)}, None),
        ({"types": (RICH,)}, None),
        ({"events": ()}, InvalidPayloadError),
        ({"faults": (BROKEN,)}, UnloadedJobTypeError),
    ],
)
def test_the_same_key_is_one_event_though_the_code_knows_other_events_by_now(
    known: dict[str, Any], refusal: type[Exception] | None
) -> None:
    jobs = InMemoryJobs()
    first = publish(an_event(key="k"), submit(jobs, PLAIN), tenant="t", trace="pia")
    now = submit(jobs, *known.pop("types", ()), **known)

    again = publish(an_event(key="k"), now, tenant="t", trace="joe")

    assert (again.job, again.replayed) == (first.job, True)
    with pytest.raises(KeyReusedError):
        publish(an_event(key="k", data={"order": "8"}), now, tenant="t", trace="joe")
    if refusal:
        with pytest.raises(refusal):
            publish(an_event(key="another"), now, tenant="t", trace="joe")
        with pytest.raises(refusal):
            publish(an_event(), now, tenant="t", trace="joe")
        with pytest.raises(refusal):
            publish(an_event(key="k", data={"order": float("nan")}), now, tenant="t", trace="joe")


@pytest.mark.parametrize(
    ("fault", "name"),
    [(BROKEN, "stock"), (JobFileError("jobs.py:1: SyntaxError", names=()), "event order.placed")],
)
def test_a_publication_waits_for_the_first_type_of_a_broken_job_file(fault: JobFileError, name: str) -> None:
    with pytest.raises(UnloadedJobTypeError) as refused:
        publish(an_event(), submit(InMemoryJobs(), faults=(fault,)), tenant="t", trace="pia")
    assert refused.value.name == name


KEY = Fault("/idempotency_key", "must be 1 to 256 characters")
GROUP = Fault("/group", "must be text of 1 to 63 bytes in UTF-8")
UNKNOWN = Fault("/type", "unknown event type 'x'; known types: order.placed")


@pytest.mark.parametrize(
    ("changes", "faults"),
    [
        ({"key": "k"}, []),
        ({"key": "k" * 256}, []),
        ({"key": "ü" * 256}, []),
        ({"key": ""}, [KEY]),
        ({"key": "k" * 257}, [KEY]),
        ({"group": "g"}, []),
        ({"group": "g" * 63}, []),
        ({"group": ""}, [GROUP]),
        ({"group": "g" * 64}, [GROUP]),
        ({"group": "ü" * 32}, [GROUP]),
        ({"key": 7, "group": ["g"]}, [Fault("/idempotency_key", "must be text"), Fault("/group", "must be text")]),
        ({"key": "", "group": 7}, [Fault("/group", "must be text")]),
        ({"data": {}}, [Fault("/data/order", "is missing")]),
        ({"data": {"order": float("inf")}}, None),
        ({"key": "", "data": {}}, [KEY, Fault("/data/order", "is missing")]),
        ({"type": "x"}, [UNKNOWN]),
        ({"type": "x", "key": "", "data": {}}, [KEY, UNKNOWN]),
        ({"version": 3}, [Fault("/version", "unknown version of 'order.placed'; known versions: 1, 2")]),
    ],
)
def test_each_fault_of_an_event_has_its_path(changes: dict[str, Any], faults: list[Fault] | None) -> None:
    jobs = InMemoryJobs()
    known = submit(jobs, events=(PLACED, replace(PLACED, version=2)))
    if faults == []:
        publish(an_event(**changes), known, tenant="t", trace="pia")
        assert len(jobs.writes) == 1
        return

    with pytest.raises(InvalidPayloadError) as refused:
        publish(an_event(**changes), known, tenant="t", trace="pia")

    if faults is None:
        assert refused.value.faults[0].path == "/data"
    else:
        assert list(refused.value.faults) == faults
    assert jobs.writes == []


def test_an_app_without_event_types_says_so() -> None:
    with pytest.raises(InvalidPayloadError, match="known types: none"):
        publish(an_event(), submit(InMemoryJobs(), events=()), tenant="t", trace="pia")


def test_the_job_of_an_event_has_created_no_jobs_before_its_success() -> None:
    event = a_job(type=EVENT_TYPE)
    done = replace(event, result='{"consumers": ["mail", "bill"]}')
    assert consumer_jobs(event) == {}
    assert consumer_jobs(done) == {follow_up_id(event, 0): "mail", follow_up_id(event, 1): "bill"}


class ARecord:
    """A record with this identity."""

    def __init__(self, identity: str = "1") -> None:
        self.identity = identity


def a_source(function: Any, written: Any = lambda data: data) -> EventSource:
    return EventSource(
        name="orders",
        kind=SourceKind.S3,
        event="order.placed",
        version=1,
        function=function,
        written=written,
        schema=None,
        file="f",
        line=1,
    )


def published(source: EventSource, jobs: InMemoryJobs, record: Any = None) -> Any:
    given: Any = record or ARecord()
    return publish_record(given, source, submit(jobs, PLAIN), tenant="t", trace="pia")


def test_a_record_becomes_one_event() -> None:
    jobs = InMemoryJobs()
    source = a_source(lambda record: {"order": record.identity})

    accepted = published(source, jobs)

    assert accepted.job.id == keyed_job_id("t", "event/order.placed/orders/1")
    assert json.loads(accepted.job.payload.text)["data"] == {"order": "1"}
    assert published(source, jobs).replayed
    assert not published(source, jobs, ARecord("2")).replayed


def test_a_record_whose_data_has_changed_makes_no_second_event() -> None:
    jobs = InMemoryJobs()
    published(a_source(lambda record: {"order": "1"}), jobs)
    with pytest.raises(KeyReusedError):
        published(a_source(lambda record: {"order": "other"}), jobs)


def test_a_record_that_the_function_leaves_out_makes_no_event() -> None:
    def never(data: Any) -> Any:
        raise AssertionError

    jobs = InMemoryJobs()
    assert published(a_source(lambda record: None, never), jobs) is None
    assert published(a_source(lambda record: {"order": "1"}, lambda data: None), jobs) is None
    assert jobs.writes == []


def raises(*_: Any) -> Any:
    raise ZeroDivisionError("no")


@pytest.mark.parametrize(
    ("source", "text"),
    [
        (a_source(raises), "source 'orders' raised ZeroDivisionError: no"),
        (a_source(lambda record: {}, raises), "source 'orders' raised ZeroDivisionError: no"),
        (a_source(lambda record: {}), "event 'order.placed' of source 'orders': /data/order: is missing"),
        (a_source(lambda record: {"order": "x" * 300_000}), "event 'order.placed' of source 'orders': the payload is"),
    ],
)
def test_a_record_of_which_this_code_makes_no_event_is_refused(source: EventSource, text: str) -> None:
    with pytest.raises(RecordRefusedError) as refused:
        published(source, InMemoryJobs())
    assert str(refused.value).startswith(text)


def test_an_outage_does_not_refuse_a_record() -> None:
    jobs = InMemoryJobs()
    jobs.refusals = [StoreUnavailableError("down")]
    with pytest.raises(StoreUnavailableError):
        published(a_source(lambda record: {"order": "1"}), jobs)


@pytest.mark.parametrize(("length", "kept"), [(249, True), (250, False)])
def test_a_long_identity_is_shortened_to_a_hash(length: int, kept: bool) -> None:
    key = event_key("orders", ARecord("x" * length))  # type: ignore[arg-type]  # of any source
    assert (key == "orders/" + "x" * length) is kept
    assert len(key) <= 256
    assert key != event_key("orders", ARecord("y" * length))  # type: ignore[arg-type]
    assert key.startswith("orders/")
