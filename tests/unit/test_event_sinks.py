"""Sinks: a consumer that sends its event to a bus, once for each success, and fails as every job does."""

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import boto3
import pytest
from moto import mock_aws
from pydantic import BaseModel

from tests.support.builders import a_run
from tests.support.job_tables import REGION
from tidemill import JobType, event_sink, event_type
from tidemill.application.job_types import JobTypes
from tidemill.aws import event_bus
from tidemill.domain.errors import DeclarationError
from tidemill.domain.job import DeathReason
from tidemill.domain.states import State
from tidemill.names import LARGEST_BODY_BYTES, Env
from tidemill.system.event_checks import require_consumers
from tidemill.testing import run_job


class Order(BaseModel):
    order: str
    amount: float = 1.5


placed = event_type("order.placed", data=Order)


class Bus:
    """Answers as EventBridge does: 200, also for an entry that it has not taken."""

    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] = []
        self.result: dict[str, Any] = {"EventId": "on-the-bus"}

    def put_events(self, *, Entries: list[dict[str, Any]]) -> dict[str, Any]:  # noqa: N803 - of the API
        self.entries += Entries
        return {"FailedEntryCount": int("ErrorCode" in self.result), "Entries": [self.result]}


@pytest.fixture
def bus(monkeypatch: pytest.MonkeyPatch) -> Bus:
    made = Bus()
    monkeypatch.setattr(event_bus, "_client", lambda: made)
    monkeypatch.setenv(Env.EVENT_BUS, "orders")
    return made


@pytest.fixture
def sink() -> JobType:
    return event_sink("bus.order-placed", event="order.placed", source="com.example.shop")


def test_the_event_is_sent_with_its_id(bus: Bus, sink: JobType) -> None:
    payload = sink.parse(json.dumps({"order": "7", "extra": [1]}))

    result = sink(payload, replace(a_run(), parent="event-id"))

    (entry,) = bus.entries
    assert (entry["EventBusName"], entry["Source"], entry["DetailType"]) == (
        "orders",
        "com.example.shop",
        "order.placed",
    )
    detail = {"id": "event-id", "type": "order.placed", "version": 1, "data": {"order": "7", "extra": [1]}}
    assert json.loads(entry["Detail"]) == detail
    assert result == {"sent_as": "on-the-bus"}


def test_it_consumes_its_event_and_no_other_version(sink: JobType) -> None:
    (consumption,) = sink.consumes
    assert (consumption.takes("order.placed", 1), consumption.takes("order.placed", 2)) == (True, False)
    require_consumers(JobTypes({sink.name: sink}, events={(placed.name, 1): placed}))


def test_an_entry_that_a_successful_call_has_not_taken_is_retried(bus: Bus, sink: JobType) -> None:
    bus.result = {"ErrorCode": "ThrottlingException", "ErrorMessage": "Rate exceeded"}

    first = run_job(sink, {"order": "7"})
    last = run_job(sink, {"order": "7"}, attempt=sink.retry.max_attempts)

    assert first.error
    assert (first.job.state, first.error.message) == (State.RETRYING, "ThrottlingException: Rate exceeded")
    assert (last.job.state, last.job.death) == (State.DEAD, DeathReason.EXHAUSTED)
    assert len(bus.entries) == 2


def test_an_event_that_is_too_large_dies_at_once(bus: Bus, sink: JobType) -> None:
    job = run_job(sink, {"order": "x" * (LARGEST_BODY_BYTES - len('{"order":""}'))}).job

    assert (job.state, job.death) == (State.DEAD, DeathReason.PERMANENT)
    assert bus.entries == []


def test_an_event_with_half_a_surrogate_pair_dies_at_once(bus: Bus, sink: JobType) -> None:
    """A payload may have one, as every job's may: JSON in ASCII holds it. A bus takes UTF-8."""
    job = run_job(sink, {"order": "\ud800"}).job

    assert (job.state, job.death) == (State.DEAD, DeathReason.PERMANENT)
    assert "half a surrogate pair" in job.errors[-1].message
    assert bus.entries == []


@pytest.mark.parametrize("code", ["MalformedDetail", "InvalidArgument"])
def test_an_entry_that_a_bus_can_never_take_dies_at_once(bus: Bus, sink: JobType, code: str) -> None:
    bus.result = {"ErrorCode": code, "ErrorMessage": "no"}

    job = run_job(sink, {"order": "7"}).job

    assert (job.state, job.death, job.errors[-1].message) == (State.DEAD, DeathReason.PERMANENT, f"{code}: no")


def test_an_event_just_below_the_limit_is_sent(bus: Bus) -> None:
    around = len('{"data":""}') + len("source") + len("type")
    event_bus.put("orders", source="source", detail_type="type", detail={"data": "x" * (262_143 - around)})

    with pytest.raises(event_bus.UnsendableEntryError):
        event_bus.put("orders", source="source", detail_type="type", detail={"data": "x" * (262_144 - around)})
    assert len(bus.entries) == 1


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv(Env.EVENT_BUS, "orders")
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    event_bus._client.cache_clear()
    with mock_aws():
        yield boto3.client("events", region_name=REGION)
    event_bus._client.cache_clear()


def test_a_bus_takes_the_call_as_it_is_made(aws: Any, sink: JobType) -> None:
    aws.create_event_bus(Name="orders")

    assert sink(sink.parse(json.dumps({"order": "7"})), a_run())["sent_as"]


@pytest.mark.parametrize("source", ["", "aws.shop", None])
def test_an_invalid_source_is_refused(source: Any) -> None:
    with pytest.raises(DeclarationError, match="source"):
        event_sink("bus.order-placed", event="order.placed", source=source)


def test_a_name_of_a_built_in_type_is_refused() -> None:
    with pytest.raises(DeclarationError, match=r"names with 'tidemill\.' are those of built-in types"):
        event_sink("tidemill.order-placed", event="order.placed", source="com.example.shop")
