"""Events through the deployed functions: each consumer has its own job, once; and the page that describes it."""

from collections import Counter
from collections.abc import Iterator

import pytest
from pydantic import BaseModel

from tests.support.builders import TENANT
from tests.support.deployed_functions import Mill, forget
from tests.support.documented_job_types import job_types_of
from tests.support.faulty_client import Fault
from tidemill import Done, JobType, Run, composition, consumes, job_type
from tidemill.application.events.events import publication, publish
from tidemill.application.explain.explain import explain
from tidemill.application.explain.explanation import Facts
from tidemill.application.job_types import JobTypes
from tidemill.application.submission.new_jobs import Accepted
from tidemill.application.submission.submit import Submit
from tidemill.domain.errors import InvalidPayloadError, KeyReusedError, PayloadTooLargeError, StoreUnavailableError
from tidemill.domain.events.events import Event
from tidemill.domain.job import DeathReason, Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.dynamodb.document import decode
from tidemill.fan_out.job import fan_out
from tidemill.names import EVENT_TYPE, LARGEST_BODY_BYTES
from tidemill.testing import run_job

PLACED = Event(type="order.placed", data={"order": "7"}, key="7")


class Anything(BaseModel, extra="allow"):
    pass


@consumes("order.placed")
@job_type("report.broken", payload=Anything, max_attempts=3, backoff_seconds=0)
def broken(_payload: Anything, _run: Run) -> None:
    raise RuntimeError("this consumer never works")


@pytest.fixture
def documented() -> Iterator[JobTypes]:
    with job_types_of("events.md") as known:
        yield known


@pytest.fixture
def types(documented: JobTypes, mill: Mill, monkeypatch: pytest.MonkeyPatch) -> JobTypes:
    """Load the types of the page, with a broken consumer."""
    return deployed(with_types(documented, broken, fan_out), monkeypatch)


def with_types(known: JobTypes, *more: JobType) -> JobTypes:
    declared = [*map(known.get, known.names()), *more]
    return JobTypes({one.name: one for one in declared}, events=known.events)


def deployed(types: JobTypes, monkeypatch: pytest.MonkeyPatch) -> JobTypes:
    forget()
    monkeypatch.setattr(composition, "known_job_types", lambda: types)
    return types


def published(event: Event = PLACED, submit: Submit | None = None) -> Accepted:
    return publish(event, submit or composition.parts().submit, tenant=TENANT, trace=f"test {event}")


def jobs(mill: Mill) -> dict[str, Job]:
    """The jobs by their types."""
    items = mill.table.client.scan(TableName=mill.table.name)["Items"]
    found = [decode(item) for item in items if "state" in item]
    assert len({job.type for job in found}) == len(found)
    return {job.type: job for job in found}


@pytest.mark.usefixtures("types")
def test_each_consumer_has_its_own_job_and_its_own_death(mill: Mill) -> None:
    event = published().job
    mill.run()

    found = jobs(mill)
    assert {type_: job.state for type_, job in found.items()} == {
        EVENT_TYPE: State.SUCCEEDED,
        "mail.confirm": State.SUCCEEDED,
        "stock.reserve": State.SUCCEEDED,
        "report.broken": State.DEAD,
    }
    consumers = [job for type_, job in found.items() if type_ != EVENT_TYPE]
    assert {(job.parent, job.hops) for job in consumers} == {(event.id, 1)}
    assert found["report.broken"].death is DeathReason.EXHAUSTED
    # One message and one attempt each: the retries of the broken one cost the others nothing.
    others = (found["mail.confirm"], found["stock.reserve"])
    assert {(job.generation, job.attempt) for job in others} == {(1, 1)}
    assert found[EVENT_TYPE].result == '{"consumers":["mail.confirm","report.broken","stock.reserve"]}'
    reached = ", ".join(
        f"{name} in job {found[name].id}" for name in ("mail.confirm", "report.broken", "stock.reserve")
    )
    answer = explain(Facts(job=found[EVENT_TYPE], now=mill.now()))
    assert answer.sentences[1:] == (f"It reached {reached}.",)


def again(_payload: Anything, _run: Run) -> Done:
    return Done(events=[Event(type="order.placed", data={"order": "7"})])


def test_the_hops_of_consumers_that_publish_again_bound_what_one_event_grows_into(
    documented: JobTypes, mill: Mill, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A round is two hops: from a consumer to its event, and on. With two of them, each round doubles the jobs."""
    pair = [
        consumes("order.placed")(job_type(name, payload=Anything, max_hops=4)(again)) for name in ("loop.a", "loop.b")
    ]
    deployed(JobTypes({one.name: one for one in (*pair, fan_out)}, events=documented.events), monkeypatch)
    published()

    mill.run()

    items = mill.table.client.scan(TableName=mill.table.name)["Items"]
    found = [decode(item) for item in items if "state" in item]
    counts = Counter((job.type == EVENT_TYPE, job.hops, job.death) for job in found)
    assert counts == {
        (True, 0, None): 1,
        (False, 1, None): 2,
        (True, 2, None): 2,
        (False, 3, None): 4,
        (True, 4, None): 4,
        (False, 5, DeathReason.HOPS): 8,
    }


@pytest.mark.usefixtures("types")
def test_a_filter_holds_an_event_back(mill: Mill) -> None:
    published(replace(PLACED, data={"order": "7", "country": "FR"}))
    mill.run()

    assert set(jobs(mill)) == {EVENT_TYPE, "mail.confirm", "report.broken"}


@pytest.mark.usefixtures("types")
def test_a_repeated_publication_is_one_event_and_another_one_of_its_key_is_refused(mill: Mill) -> None:
    first = published()
    mill.run()
    second = published()
    mill.run()

    assert (first.replayed, second.replayed, first.job.id) == (False, True, second.job.id)
    assert len(jobs(mill)) == 4
    with pytest.raises(KeyReusedError):
        published(replace(PLACED, data={"order": "8"}))


def test_the_consumers_of_an_event_take_none_of_its_room(types: JobTypes) -> None:
    """A deployment may add some before it is published again."""

    def prepare(length: int) -> Job:
        event = replace(PLACED, data={"order": "7" * length})
        return composition.parts().submit.prepare(publication(event, types), tenant=TENANT, trace="test")

    assert len(prepare(LARGEST_BODY_BYTES - 100).payload.text or "") > LARGEST_BODY_BYTES
    with pytest.raises(PayloadTooLargeError):
        prepare(LARGEST_BODY_BYTES)


@pytest.mark.usefixtures("types")
def test_an_event_whose_answer_was_lost_is_published_once(mill: Mill) -> None:
    mill.client.faults = [Fault.ANSWER_LOST]
    with pytest.raises(StoreUnavailableError):
        published()

    assert published().replayed
    mill.run()
    assert len(jobs(mill)) == 4


def test_a_deployment_changes_neither_the_consumers_of_an_event_nor_its_repetition(
    mill: Mill, types: JobTypes, documented: JobTypes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It removes the broken consumer and adds another."""
    first = published()
    added = consumes("order.placed")(job_type("report.added", payload=Anything)(lambda payload, run: None))
    deployed(with_types(documented, added, fan_out), monkeypatch)

    second = published()
    mill.publish()
    mill.work(mill.receive())

    assert (second.replayed, second.job.id) == (True, first.job.id)
    assert set(jobs(mill)) == {EVENT_TYPE, "mail.confirm", "report.broken", "stock.reserve"}


def test_a_repetition_finds_its_event_although_the_event_type_is_gone(
    types: JobTypes, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = published()
    deployed(JobTypes({fan_out.name: fan_out}), monkeypatch)

    assert published().job.id == first.job.id
    with pytest.raises(InvalidPayloadError, match="unknown event type"):
        published(replace(PLACED, key="another"))


def test_an_event_without_consumers_succeeds(mill: Mill, documented: JobTypes, monkeypatch: pytest.MonkeyPatch) -> None:
    deployed(JobTypes({fan_out.name: fan_out}, events=documented.events), monkeypatch)
    published()
    mill.run()

    assert {type_: job.state for type_, job in jobs(mill).items()} == {EVENT_TYPE: State.SUCCEEDED}


@pytest.mark.usefixtures("types")
def test_what_does_not_fit_stores_nothing(mill: Mill) -> None:
    with pytest.raises(InvalidPayloadError, match="/data/order"):
        published(replace(PLACED, data={}))

    assert mill.stored() == 0


@pytest.mark.usefixtures("types")
def test_the_events_of_a_group_are_consumed_one_at_a_time_by_each_consumer(mill: Mill) -> None:
    event = replace(PLACED, group="ada")
    published(event)
    mill.run()

    groups = {type_: job.group.key for type_, job in jobs(mill).items()}
    assert groups == {type_: f"{type_}/ada" for type_ in groups}


@pytest.mark.usefixtures("types")
def test_a_handler_publishes_with_its_success(mill: Mill) -> None:
    mill.accepted({"order": "7"}, job_type="shop.checkout")
    mill.run()

    found = jobs(mill)
    assert found[EVENT_TYPE].parent == found["shop.checkout"].id
    assert found["mail.confirm"].parent == found[EVENT_TYPE].id
    assert published().job.id == found[EVENT_TYPE].id


def test_the_types_of_the_page_run(documented: JobTypes) -> None:
    known = [*documented.events.values()]
    ran = run_job(documented.get("shop.checkout"), {"order": "7"}, known=known)

    assert ran.published == (PLACED,)
    assert run_job(documented.get("mail.confirm"), {"order": "7"}).result == {"confirmed": "7"}
    assert run_job(documented.get("stock.reserve"), {"order": "7"}).result == {"reserved": "7"}
