"""Event types, their consumers, and what a publication makes of them."""

from collections.abc import Callable
from dataclasses import replace
from datetime import date
from decimal import Decimal
from typing import Any, Literal

import pytest
from pydantic import AliasChoices, BaseModel, ConfigDict, Field

from tests.support.builders import a_run
from tidemill import Done, Event, JobType, Lane, Run, Submission, consumes, event_type, job_type
from tidemill.application.events.events import publication
from tidemill.application.job_types import JobTypes
from tidemill.domain.errors import DeclarationError, InvalidPayloadError, JobFileError, UnloadedJobTypeError
from tidemill.domain.events.events import Delivery
from tidemill.domain.job import DeathReason
from tidemill.fan_out.job import PublishedEvent, fan_out
from tidemill.system.event_checks import require_consumers
from tidemill.testing import run_job


class Order(BaseModel):
    order: str
    country: str = "DE"


class Heavier(BaseModel):
    order: str
    weight: float


placed = event_type("order.placed", data=Order)


class Noted(BaseModel):
    note: Any


noted = event_type("order.noted", data=Noted)


def a_consumer(name: str = "mail.confirm", *consumed: Any, payload: type[BaseModel] = Order, **options: Any) -> JobType:
    made = job_type(name, payload=payload, **options)(lambda payload, run: None)
    for consumption in consumed or [consumes("order.placed")]:
        made = consumption(made)
    return made


def known(*declared: Any) -> JobTypes:
    return JobTypes(
        {one.name: one for one in declared if isinstance(one, JobType)},
        events={(one.name, one.version): one for one in declared if not isinstance(one, JobType)},
    )


def reached(event: Event, *declared: Any) -> list[str]:
    return [one["type"] for one in publication(event, known(placed, *declared)).payload["consumers"]]


AN_EVENT = Event(type="order.placed", data={"order": "7"})


def test_an_event_reaches_each_consumer_of_its_type() -> None:
    other = a_consumer("report.other", consumes("order.paid"))

    assert reached(AN_EVENT, a_consumer("stock.reserve"), other, a_consumer()) == ["mail.confirm", "stock.reserve"]


@pytest.mark.parametrize(
    ("wanted", "matches"),
    [
        ({"country": ["DE", "AT"]}, True),
        ({"country": "FR"}, False),
        ({"country": ["DE"], "order": "7"}, True),
        ({"country": ["DE"], "order": "8"}, False),
    ],
)
def test_a_filter_compares_each_field_with_its_values(wanted: dict[str, Any], matches: bool) -> None:
    """The country is the default of the model."""
    consumer = a_consumer("mail.confirm", consumes("order.placed", filter=wanted))

    assert bool(reached(AN_EVENT, consumer)) == matches


def test_a_filter_tells_true_from_one() -> None:
    class Gift(BaseModel):
        gift: int | bool

    given = event_type("gift.given", data=Gift)
    one = a_consumer("one", consumes("gift.given", filter={"gift": 1}), payload=Gift)
    true = a_consumer("true", consumes("gift.given", filter={"gift": True}), payload=Gift)

    assert reached(Event(type="gift.given", data={"gift": True}), given, one, true) == ["true"]


class Priced(BaseModel):
    model_config = ConfigDict(populate_by_name=True)

    amount: Decimal = Field(default=Decimal(3), alias="Amount")
    until: date | None = Field(default=None, validation_alias=AliasChoices("Until", "end"), serialization_alias="ends")
    size: Literal["S", "L"] = "S"


priced = event_type("item.priced", data=Priced)


@pytest.mark.parametrize("name", ["amount", "Amount"])
@pytest.mark.parametrize(
    ("data", "value"),
    [({"Amount": 5}, 5), ({"Amount": 5}, "5"), ({"amount": 5}, 5), ({"Amount": "5.0"}, "5.0"), ({}, "3")],
)
def test_a_filter_knows_the_names_of_a_field_and_both_forms_of_its_value(
    name: str, data: dict[str, Any], value: Any
) -> None:
    """The value may be as it was published, and as the model writes it: a decimal as text."""
    hit = a_consumer("hit", consumes("item.priced", filter={name: value}), payload=Priced)
    missed = a_consumer("missed", consumes("item.priced", filter={name: "7"}), payload=Priced)
    types = known(priced, hit, missed)

    require_consumers(types)

    made = publication(Event(type="item.priced", data=data), types).payload
    assert [one["type"] for one in made["consumers"]] == ["hit"]


@pytest.mark.parametrize("name", ["until", "Until", "end", "ends"])
def test_a_filter_may_use_each_alias(name: str) -> None:
    types = known(priced, a_consumer("hit", consumes("item.priced", filter={name: "2026-01-31"}), payload=Priced))

    require_consumers(types)

    made = publication(Event(type="item.priced", data={"end": "2026-01-31"}), types).payload
    assert [one["type"] for one in made["consumers"]] == ["hit"]


@pytest.mark.parametrize(
    ("wanted", "fault"),
    [
        (
            {"until": 5},
            "'item.priced' version 1 by 'until': 5, and it is of type null or string",
        ),
        ({"Amount": True}, "by 'Amount': True, and it is of type number or string"),
        ({"size": ["S", None]}, "by 'size': None, and it is of type string"),
        ({"sizes": "S"}, "by 'sizes', which is not one of its fields"),
    ],
)
def test_a_filter_that_can_match_no_event_is_refused(wanted: dict[str, Any], fault: str) -> None:
    types = known(priced, a_consumer("mail.confirm", consumes("item.priced", filter=wanted), payload=Priced))

    with pytest.raises(JobFileError, match=fault):
        require_consumers(types)


def test_several_consumptions_make_one_job() -> None:
    twice = a_consumer("mail.confirm", consumes("order.placed", filter={"order": "7"}), consumes("order.placed"))

    assert reached(AN_EVENT, twice) == ["mail.confirm"]


def test_a_version_has_its_own_model_and_consumers() -> None:
    second = event_type("order.placed", data=Heavier, version=2)
    types = [second, a_consumer("first", consumes("order.placed", version=1)), a_consumer("both")]

    assert reached(AN_EVENT, *types) == ["both", "first"]
    assert reached(Event(type="order.placed", version=2, data={"order": "7", "weight": 1.5}), *types) == ["both"]


@pytest.mark.parametrize(
    ("event", "paths"),
    [
        (Event(type="order.lost"), ["/type"]),
        (Event(type="order.placed", version=3, data={"order": "7"}), ["/version"]),
        (Event(type="order.placed", data={"country": 5}), ["/data/order", "/data/country"]),
        (Event(type="order.placed", data={"order": float("inf")}), ["/data"]),
        (Event(type="order.placed", data={"order": "7"}, key="", group="x" * 64), ["/idempotency_key", "/group"]),
        (Event(type="order.placed", data={"order": "7"}, key=7, group=8), ["/idempotency_key", "/group"]),  # type: ignore[arg-type]
        (Event(type="order.noted", data={"note": {"\ud800": 1}}), ["/data"]),
    ],
)
def test_an_invalid_event_is_refused_with_the_path_of_each_fault(event: Event, paths: list[str]) -> None:
    with pytest.raises(InvalidPayloadError) as refused:
        publication(event, known(placed, noted))

    assert [fault.path for fault in refused.value.faults] == paths


def test_nothing_is_published_while_a_file_that_may_hold_a_consumer_is_broken() -> None:
    types = JobTypes({}, [JobFileError("jobs/mail.py, line 3: broken")], {("order.placed", 1): placed})

    with pytest.raises(UnloadedJobTypeError, match="line 3") as unloaded:
        publication(AN_EVENT, types)

    assert types.lacks(unloaded.value.name), "a job that publishes waits in its line"
    assert unloaded.value.name == "event order.placed", "no job type has this name"


def test_the_job_of_an_event_creates_the_jobs_of_its_consumers_as_they_were_declared() -> None:
    consumer = a_consumer(lane=Lane.BULK, on_dead="block", max_age_seconds=60, retention_days=2)
    made = publication(Event(type="order.placed", data={"order": "7"}, group="berlin"), known(placed, consumer))

    done = fan_out(PublishedEvent.model_validate(made.payload), replace(a_run(), group=made.group))

    (delivery,) = done.then
    assert done.result == {"consumers": ["mail.confirm"]}
    assert isinstance(delivery, Delivery)
    assert (delivery.type, delivery.payload, delivery.lane) == ("mail.confirm", {"order": "7"}, Lane.BULK)
    assert (delivery.group, delivery.blocks) == ("mail.confirm/berlin", True)
    assert (delivery.max_age, delivery.retention) == (consumer.max_age, consumer.retention)


def test_neither_an_unknown_consumer_nor_data_that_it_refuses_stops_the_others() -> None:
    consumers = [{"type": "no.such", "lane": "bulk"}, {"type": "mail.confirm", "lane": "default"}]
    payload = {"type": "order.placed", "version": 1, "data": {"country": 5}, "consumers": consumers}
    run = run_job(job_type("test.fan-out", payload=PublishedEvent)(fan_out.handler), payload, known=[a_consumer()])

    assert run.result == {"consumers": ["no.such", "mail.confirm"]}
    assert [submission.type for submission in run.enqueued] == ["no.such", "mail.confirm"]


def test_a_handler_publishes_with_its_success() -> None:
    def handler(payload: Order, run: Run) -> Done:
        return Done(events=[Event(type="order.placed", data={"order": payload.order})])

    ran = run_job(job_type("shop.order", payload=Order)(handler), {"order": "7"}, known=[placed])

    assert ran.published == (AN_EVENT,)


def test_a_handler_that_publishes_what_does_not_fit_is_dead() -> None:
    def handler(payload: Order, run: Run) -> Done:
        return Done(events=[Event(type="order.placed", data={})])

    ran = run_job(job_type("shop.order", payload=Order)(handler), {"order": "7"}, known=[placed])

    assert (ran.job.death, ran.published) == (DeathReason.RESULT_UNSTORABLE, ())
    assert ran.error
    assert "/data/order" in ran.error.message


def test_the_job_of_an_event_cannot_be_submitted_directly() -> None:
    """It names the lanes of jobs."""

    def handler(payload: Order, run: Run) -> Done:
        return Done(then=[Submission(type=fan_out.name, payload={})])

    ran = run_job(job_type("shop.order", payload=Order)(handler), {"order": "7"}, known=[placed])

    assert ran.error
    assert "publish the event instead" in ran.error.message


class NeedsPhone(BaseModel):
    phone: str


class CountsOrders(BaseModel):
    order: int


class Country(BaseModel):
    country: str


class Address(BaseModel):
    city: str


class Sent(BaseModel):
    note: str | None = None
    to: Address
    parts: list[int] = []


sent = event_type("order.sent", data=Sent)


class WithoutNull(BaseModel):
    note: str = ""


class OneLine(BaseModel):
    to: str


class Tolerant(BaseModel):
    note: str | int | None = None
    to: dict[str, str]
    parts: Any = None


class Closed(BaseModel, extra="forbid"):
    order: str


@pytest.mark.parametrize(
    ("consumer", "fault"),
    [
        (lambda: a_consumer("mail.confirm", consumes("order.lost")), "'order.lost', which does not exist"),
        (lambda: a_consumer("mail.confirm", consumes("order.placed", version=2)), "version 2, which does not exist"),
        (lambda: a_consumer("mail.confirm", consumes("order.placed", filter={"city": "Ulm"})), "'city', which is not"),
        (lambda: a_consumer(payload=NeedsPhone), "it requires 'phone', which the data"),
        (lambda: a_consumer(payload=Country), "it requires 'country', which the data"),
        (lambda: a_consumer(payload=CountsOrders), "'order' is of type string, and it takes integer"),
        (lambda: a_consumer(payload=Closed), "it forbids 'country'"),
        (
            lambda: a_consumer("mail.confirm", consumes("order.sent"), payload=WithoutNull),
            "'note' is of type null",
        ),
        (lambda: a_consumer("mail.confirm", consumes("order.sent"), payload=OneLine), "'to' is of type object"),
    ],
)
def test_a_consumer_that_cannot_take_its_events_stops_the_synthesis(
    consumer: Callable[[], JobType], fault: str
) -> None:
    with pytest.raises(JobFileError, match=r"test_events.py, line \d+: 'mail.confirm' .*" + fault):
        require_consumers(known(placed, sent, consumer()))


def test_an_event_has_no_more_consumers_than_one_transaction_has_room_for() -> None:
    with pytest.raises(JobFileError, match="has 25 consumers, and one transaction creates the jobs of at most 24"):
        require_consumers(known(placed, *(a_consumer(f"mail.n{number}") for number in range(25))))


def test_sound_consumers_pass() -> None:
    require_consumers(known(placed, a_consumer(), a_consumer("stock.reserve", consumes("order.placed", filter={}))))
    require_consumers(known(sent, a_consumer("mail.confirm", consumes("order.sent"), payload=Tolerant)))


@pytest.mark.parametrize(
    "declare",
    [
        lambda: event_type("Order Placed", data=Order),
        lambda: event_type("order.placed", data=Order, version=0),
        lambda: event_type("order.placed", data=dict),  # type: ignore[arg-type]  # wrong on purpose
        lambda: consumes("Order Placed"),
        lambda: consumes("order.placed", filter={"country": []}),
        lambda: consumes("order.placed", filter={"country": {"not": "DE"}}),  # type: ignore[dict-item]  # as above
        lambda: consumes("order.placed")(print),  # type: ignore[arg-type]  # as above
        lambda: a_consumer(unique_seconds=60),
    ],
)
def test_a_wrong_declaration_is_refused_where_it_stands(declare: Callable[[], object]) -> None:
    with pytest.raises(DeclarationError):
        declare()
