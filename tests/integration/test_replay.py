"""Replay: a consumer gets each stored event once, in its order, and no other consumer gets anything."""

import dataclasses
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

import pytest
from pydantic import BaseModel

from tests.support.builders import TENANT, a_run
from tests.support.deployed_functions import Mill, forget
from tests.support.faulty_client import Fault
from tidemill import Continue, Done, JobType, PermanentJobError, Run, composition, consumes, event_type, job_type
from tidemill.application.events.events import publish
from tidemill.application.events.replay import Progress, Replay, ReplayVerdict, delivery_id
from tidemill.application.job_types import JobTypes
from tidemill.domain.errors import StoreUnavailableError, TransactionConflictError
from tidemill.domain.events.events import Event
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.dynamodb.document import decode, key
from tidemill.dynamodb.events.listed_events import ListedEvents
from tidemill.fan_out.job import fan_out
from tidemill.fan_out.replay_job import ReplayRequest, replay
from tidemill.names import EVENT_TYPE, REPLAY_TENANT, Env, Lane
from tidemill.system import clock

_CONSUMER: Final = "mail.confirm"


class Placed(BaseModel):
    order: str
    country: str = "DE"


class Strict(BaseModel):
    order: int


placed = event_type("order.placed", data=Placed)
paid = event_type("order.paid", data=Placed)


def a_consumer(name: str, *consumed: Any, payload: type[BaseModel] = Placed, **options: Any) -> JobType:
    made = job_type(name, payload=payload, **options)(lambda _payload, run: Done({"event": run.parent}))
    for consumption in consumed or [consumes("order.placed")]:
        made = consumption(made)
    return made


Deploy = Callable[..., None]


@pytest.fixture
def deploy(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> Deploy:
    """Deploy these consumers."""

    def deploy(*consumers: JobType) -> None:
        forget()
        known = JobTypes(
            {one.name: one for one in (*consumers, fan_out, replay)},
            events={(one.name, one.version): one for one in (placed, paid)},
        )
        monkeypatch.setattr(composition, "known_job_types", lambda: known)

    deploy(a_consumer("stock.reserve"))
    return deploy


def published(mill: Mill, *events: Event, tenant: str = TENANT) -> list[Job]:
    made = [publish(event, composition.parts().submit, tenant=tenant, trace=f"t {event}").job for event in events]
    mill.run()
    return made


def an_event(order: str, **options: Any) -> Event:
    return Event(type="order.placed", data={"order": order}, **options)


def wanted(**options: Any) -> Replay:
    chosen: dict[str, Any] = {"consumer": _CONSUMER, "event": "order.placed", "version": None, "tenant": TENANT}
    times = {"since": clock.now() - timedelta(hours=1), "until": clock.now() + timedelta(minutes=1)}
    return Replay(**chosen | times | options)


def replayed(progress: Progress | None = None, *, events: int = 1_000, **options: Any) -> Progress:
    """A run whose time ends after so many events."""
    left = iter([timedelta(seconds=10)] * events)
    asked = wanted(**options)
    return (
        composition.parts()
        .replayer(tenant=asked.tenant, rate=10_000, read_units=10_000)
        .run(
            asked,
            progress or Progress(),
            time_left=lambda: next(left, timedelta(seconds=-1)),
            save=lambda _: None,
        )
    )


def stored(mill: Mill, kind: str = _CONSUMER) -> list[Job]:
    found = [decode(item) for item in mill.table.client.scan(TableName=mill.table.name)["Items"] if "state" in item]
    return [job for job in found if job.type == kind]


def test_only_the_consumer_gets_the_events_and_it_gets_each_once(mill: Mill, deploy: Deploy) -> None:
    first, second = published(mill, an_event("1"), an_event("2"))
    published(mill, Event(type="order.paid", data={"order": "3"}))
    deploy(a_consumer("stock.reserve"), a_consumer(_CONSUMER, lane=Lane.CRITICAL, max_age_seconds=60))

    progress = replayed()

    assert (progress.complete, dict(progress.counts)) == (True, {ReplayVerdict.REPLAYED: 2})
    assert Counter(job.parent for job in stored(mill)) == {first.id: 1, second.id: 1}
    assert len(stored(mill, "stock.reserve")) == 2, "those of the publications"
    (made,) = [job for job in stored(mill) if job.parent == first.id]
    assert (made.lane, made.tags, made.lifetime.useful_until, made.hops) == (
        Lane.BULK,
        ("replay",),
        None,
        first.hops + 1,
    )
    assert composition.parts().payloads.load(made) == '{"order":"1"}'


def test_the_same_event_makes_no_second_job_in_another_replay_of_the_name(mill: Mill, deploy: Deploy) -> None:
    published(mill, an_event("1"))
    deploy(a_consumer(_CONSUMER))
    replayed()

    again = replayed(since=clock.now() - timedelta(hours=2))

    assert dict(again.counts) == {ReplayVerdict.EARLIER: 1}
    assert len(stored(mill)) == 1


def test_a_replay_with_a_name_gives_it_again(mill: Mill, deploy: Deploy) -> None:
    (event,) = published(mill, an_event("1"))
    deploy(a_consumer(_CONSUMER))
    replayed()

    replayed(name="second")
    replayed(name="second")

    jobs = {job.tags: job for job in stored(mill)}
    assert set(jobs) == {("replay",), ("replay:second",)}
    assert len({job.id for job in jobs.values()}) == 2, "each has an idempotency key of its own"
    assert {job.parent for job in jobs.values()} == {event.id}, "and the same event"


@pytest.mark.parametrize("length", [timedelta(0), -timedelta(hours=1), timedelta(microseconds=400)])
def test_a_replay_of_no_time_is_complete_without_a_query(length: timedelta) -> None:
    """DynamoDB refuses `BETWEEN` whose first bound is the larger one, and each try of the job would fail."""
    no_client: Any = None
    no_read: Any = lambda _keys, **_: []  # noqa: E731 - its type is that of a protocol
    events = ListedEvents(no_client, table="jobs", tenant=TENANT, read=no_read)
    begin = clock.now().replace(microsecond=300)

    (page,) = events.pages(
        wanted(since=begin, until=begin + length), after=None, now=begin, time_left=lambda: timedelta.max
    )

    assert (page.found, page.cursor) == ([], None)


def test_a_handler_knows_the_event(mill: Mill, deploy: Deploy) -> None:
    deploy(a_consumer(_CONSUMER))
    (event,) = published(mill, an_event("1"))

    (job,) = stored(mill)
    assert (job.state, job.result) == (State.SUCCEEDED, f'{{"event":"{event.id}"}}')


def test_missed_events_are_those_whose_publication_did_not_reach_it(mill: Mill, deploy: Deploy) -> None:
    (old,) = published(mill, an_event("1"))
    deploy(a_consumer(_CONSUMER))
    published(mill, an_event("2"))

    progress = replayed(missed=True)

    assert dict(progress.counts) == {ReplayVerdict.REPLAYED: 1, ReplayVerdict.REACHED: 1}
    assert [job.parent for job in stored(mill) if job.tags] == [old.id]


def test_the_filter_and_the_version_of_the_consumer_hold(mill: Mill, deploy: Deploy) -> None:
    published(mill, an_event("1"), Event(type="order.placed", data={"order": "2", "country": "FR"}))
    deploy(a_consumer(_CONSUMER, consumes("order.placed", filter={"country": "DE"}, version=1)))

    assert dict(replayed().counts) == {ReplayVerdict.REPLAYED: 1, ReplayVerdict.FILTERED: 1}
    assert dict(replayed(version=2).counts) == {}


def test_an_old_event_that_the_model_refuses_is_reported(mill: Mill, deploy: Deploy) -> None:
    refused, _ = published(mill, an_event("x"), an_event("2"))
    deploy(a_consumer(_CONSUMER, payload=Strict))

    progress = replayed()

    assert dict(progress.counts) == {ReplayVerdict.REFUSED: 1, ReplayVerdict.REPLAYED: 1}
    (failure,) = progress.failures
    assert (failure["tenant"], failure["id"]) == (TENANT, refused.id)
    assert "/order" in failure["error"]


def test_events_of_a_group_come_in_their_order(mill: Mill, deploy: Deploy) -> None:
    events = published(mill, *(an_event(str(number), group="berlin") for number in range(5)))
    deploy(a_consumer(_CONSUMER, on_dead="block"))

    replayed()

    jobs = sorted(stored(mill), key=lambda job: job.group.sequence or 0)
    assert [job.parent for job in jobs] == [event.id for event in sorted(events, key=lambda each: each.created_at)]
    assert {(job.group.key, job.group.blocks) for job in jobs} == {("mail.confirm/berlin", True)}


def test_without_a_tenant_the_table_is_read_and_the_events_of_groups_are_left_out(mill: Mill, deploy: Deploy) -> None:
    mine, _ = published(mill, an_event("1"), an_event("2", group="berlin"))
    (other,) = published(mill, an_event("3"), tenant="999:AIDAOTHER")
    deploy(a_consumer(_CONSUMER))

    progress = replayed(tenant=None)

    assert dict(progress.counts) == {ReplayVerdict.REPLAYED: 2, ReplayVerdict.UNORDERED: 1}
    assert {(job.tenant, job.parent) for job in stored(mill)} == {(TENANT, mine.id), (other.tenant, other.id)}


def test_without_a_listing_the_events_of_a_tenant_are_found(
    mill: Mill, deploy: Deploy, monkeypatch: pytest.MonkeyPatch
) -> None:
    published(mill, an_event("1"))
    published(mill, an_event("3"), tenant="999:AIDAOTHER")
    monkeypatch.setenv(Env.LISTING, "")
    deploy(a_consumer(_CONSUMER))

    assert dict(replayed().counts) == {ReplayVerdict.REPLAYED: 1}


def test_an_event_that_has_not_reached_its_consumers_is_left_to_its_publication(mill: Mill, deploy: Deploy) -> None:
    publish(an_event("1"), composition.parts().submit, tenant=TENANT, trace="t")
    deploy(a_consumer(_CONSUMER))

    assert dict(replayed().counts) == {ReplayVerdict.UNFINISHED: 1}
    assert stored(mill) == []


@pytest.mark.parametrize("tenant", [TENANT, None])
def test_a_run_without_time_left_goes_on_where_it_was(mill: Mill, deploy: Deploy, tenant: str | None) -> None:
    published(mill, *(an_event(str(number)) for number in range(5)))
    deploy(a_consumer(_CONSUMER))

    progress, runs = Progress(), 0
    while not progress.complete:
        # A checkpoint keeps the progress in this form.
        progress = replayed(Progress.of_json(progress.as_json()), events=2, tenant=tenant)
        runs += 1

    assert runs >= 3
    assert dict(progress.counts) == {ReplayVerdict.REPLAYED: 5}
    assert len(stored(mill)) == 5


@pytest.mark.parametrize("tenant", [TENANT, None])
def test_a_damaged_event_counts_once_however_many_runs_its_page_takes(
    mill: Mill, deploy: Deploy, tenant: str | None
) -> None:
    for damaged in published(mill, *(an_event(str(number)) for number in range(4)))[1::2]:
        mill.client.update_item(
            TableName=mill.table.name,
            Key=key(damaged.tenant, damaged.id),
            UpdateExpression="SET lane = :lane",
            ExpressionAttributeValues={":lane": {"S": "urgent"}},
        )
    deploy(a_consumer(_CONSUMER))

    progress = Progress()
    while not progress.complete:
        progress = replayed(progress, events=1, tenant=tenant)

    assert dict(progress.counts) == {ReplayVerdict.REPLAYED: 2, ReplayVerdict.UNREADABLE: 2}


def test_a_run_that_lost_its_progress_makes_no_second_job(mill: Mill, deploy: Deploy) -> None:
    published(mill, *(an_event(str(number), group="berlin") for number in range(3)))
    deploy(a_consumer(_CONSUMER))
    replayed(events=2)

    progress = replayed()

    assert progress.complete
    assert progress.counts[ReplayVerdict.REPLAYED] + progress.counts[ReplayVerdict.EARLIER] == 3
    assert len(stored(mill)) == 3


@pytest.mark.parametrize(
    ("fault", "error"),
    [(Fault.ANSWER_LOST, StoreUnavailableError), (Fault.IN_CONFLICT, TransactionConflictError)],
)
def test_an_outage_ends_the_run_and_not_the_replay(
    mill: Mill, deploy: Deploy, fault: Fault, error: type[Exception]
) -> None:
    """A conflict, too: an event that was passed over would come after the later ones of its group."""
    published(mill, an_event("1"))
    deploy(a_consumer(_CONSUMER))
    mill.client.faults = [fault]

    with pytest.raises(error):
        replayed()

    assert dict(replayed().counts) in ({ReplayVerdict.REPLAYED: 1}, {ReplayVerdict.EARLIER: 1})
    assert len(stored(mill)) == 1


def test_a_dry_run_counts_and_writes_nothing(mill: Mill, deploy: Deploy) -> None:
    published(mill, an_event("1"), an_event("2"))
    deploy(a_consumer(_CONSUMER))
    replayed(events=1)
    items = mill.stored()

    progress = replayed(dry_run=True)

    assert progress.counts[ReplayVerdict.REPLAYED] + progress.counts[ReplayVerdict.EARLIER] == 2
    assert progress.counts[ReplayVerdict.EARLIER] == len(stored(mill))
    assert mill.stored() == items


@pytest.mark.parametrize("consumer", ["no.such", "stock.reserve"])
def test_a_type_that_does_not_consume_the_event_is_refused(mill: Mill, deploy: Deploy, consumer: str) -> None:
    deploy(a_consumer("stock.reserve", consumes("order.paid")))

    with pytest.raises(PermanentJobError, match="no job type"):
        replayed(consumer=consumer)


def test_the_job_goes_on_by_itself_until_it_is_complete(mill: Mill, deploy: Deploy) -> None:
    published(mill, an_event("1"))
    deploy(a_consumer(_CONSUMER))

    first = replay(_request(), _a_run(deadline=clock.now()))
    assert isinstance(first, Continue)

    second = replay(_request(), _a_run(resumed_from=first.checkpoint))
    assert isinstance(second, dict)
    assert (second["complete"], second["counts"]) == (True, {"replayed": 1})


def test_only_operators_replay(mill: Mill, deploy: Deploy) -> None:
    with pytest.raises(PermanentJobError, match="tidemill replay"):
        replay(_request(), _a_run(tenant=TENANT))


def test_a_later_event_of_the_key_has_jobs_of_its_own(deploy: Deploy, mill: Mill) -> None:
    (event,) = published(mill, an_event("1", key="7"))
    later = replace(event, created_at=event.created_at + timedelta(days=31))

    ids = {delivery_id(one, name, again) for one in (event, later) for name in "ab" for again in ("", "x")}

    assert len(ids) == 8
    assert event.type == EVENT_TYPE


def _request() -> ReplayRequest:
    asked = wanted()
    return ReplayRequest(consumer=_CONSUMER, event=asked.event, since=asked.since, until=asked.until, rate=1_000)


def _a_run(**changes: Any) -> Run:
    deadline: datetime = clock.now() + timedelta(seconds=30)
    return dataclasses.replace(a_run(), **{"tenant": REPLAY_TENANT, "deadline": deadline, **changes})
