"""`POST /events`: an event is accepted once, or refused with the path of each fault and nothing stored."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.deployed_functions import Mill, forget
from tests.support.documented_job_types import job_types_of
from tests.support.http_events import Answer, call
from tidemill import composition
from tidemill.application.configuration import CACHED_FOR, Configurator
from tidemill.application.job_types import JobTypes
from tidemill.domain.states import State
from tidemill.dynamodb.document import decode
from tidemill.dynamodb.operations.configuration_item import DynamoConfiguration
from tidemill.entrypoints import submit
from tidemill.fan_out.job import fan_out
from tidemill.names import EVENT_TYPE

PLACED = {"type": "order.placed", "data": {"order": "7"}}


@pytest.fixture(autouse=True)
def _types(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Load the types of the page of events."""
    with job_types_of("events.md") as known:
        declared = {name: known.get(name) for name in known.names()} | {fan_out.name: fan_out}
        types = JobTypes(declared, events=known.events)
        forget()
        monkeypatch.setattr(composition, "known_job_types", lambda: types)
        yield


def post(body: Any, *, key: str | None = None, media_type: str = "application/json") -> Answer:
    headers = {"content-type": media_type} | ({"idempotency-key": key} if key else {})
    return call(submit, "POST", "/events", body=json.dumps(body), headers=headers)


def paths(answer: Answer) -> list[str]:
    assert (answer.status, answer.body["type"]) == (422, "urn:tidemill:problem:invalid-body"), answer
    return [fault["pointer"].removeprefix("#") for fault in answer.body["errors"]]


def test_an_event_is_accepted_and_reaches_its_consumers(mill: Mill) -> None:
    answer = post(PLACED)

    assert (answer.status, answer.body["type"], answer.body["state"]) == (202, EVENT_TYPE, "queued")
    assert answer.headers["Location"] == f"/jobs/{answer.body['id']}"
    assert [each["type"] for each in answer.body["payload"]["consumers"]] == ["mail.confirm", "stock.reserve"]
    mill.run()
    job = mill.job(answer.body["id"])
    assert (job.state, job.result) == (State.SUCCEEDED, '{"consumers":["mail.confirm","stock.reserve"]}')


def test_the_same_event_again_is_a_replay_and_another_one_with_its_key_is_refused(mill: Mill) -> None:
    first, second = post(PLACED, key="7"), post(PLACED, key="7")
    stored = mill.stored()
    other = post(PLACED | {"data": {"order": "8"}}, key="7")

    assert (first.status, second.status, second.headers["Idempotent-Replayed"]) == (202, 200, "true")
    assert first.body["id"] == second.body["id"]
    assert (other.status, other.body["type"]) == (422, "urn:tidemill:problem:key-reused")
    assert mill.stored() == stored


@pytest.mark.parametrize(
    ("body", "faulty"),
    [
        ({"type": "order.lost"}, ["/type"]),
        (PLACED | {"version": 2}, ["/version"]),
        (PLACED | {"version": 0}, ["/version"]),
        (PLACED | {"data": {"country": 7}}, ["/data/order", "/data/country"]),
        (PLACED | {"data": []}, ["/data"]),
        (PLACED | {"group": ""}, ["/group"]),
        (PLACED | {"group": 7, "data": {}}, ["/group", "/data/order"]),
        (PLACED | {"lane": "bulk"}, ["/lane"]),
        (PLACED | {"\ud800": 1}, [""]),
        ({"data": {}}, ["/type"]),
    ],
)
def test_what_does_not_fit_is_refused_with_the_path_of_each_fault(mill: Mill, body: Any, faulty: list[str]) -> None:
    assert paths(post(body)) == faulty
    assert mill.stored() == 0


def test_half_a_surrogate_pair_goes_through_unchanged_as_in_a_payload(mill: Mill) -> None:
    answer = post({"type": "order.placed", "data": {"order": "\ud800"}})

    mill.run()

    assert mill.job(answer.body["id"]).state is State.SUCCEEDED
    stored = mill.table.client.scan(TableName=mill.table.name)["Items"]
    confirmed = [decode(item).result for item in stored if "state" in item and decode(item).type == "mail.confirm"]
    assert [json.loads(result or "") for result in confirmed] == [{"confirmed": "\ud800"}]


def test_a_body_of_another_media_type_or_too_large_is_refused(mill: Mill) -> None:
    assert post(PLACED, media_type="text/plain").status == 415
    assert post({"type": "order.placed", "data": {"order": "7" * 300_000}}).status == 413
    assert mill.stored() == 0


def test_while_the_lane_of_events_is_paused_they_are_refused_where_jobs_are(mill: Mill) -> None:
    mill.stop_clock()
    changes = Configurator(store=DynamoConfiguration(mill.table.client, table=mill.table.name), clock=mill.now)
    changes.set(changes.read(), "pauses.lane=default", {"reject_new": True}, by="arn:ops", reason="a test")
    mill.late += CACHED_FOR
    stored = mill.stored()

    answer = post(PLACED)

    assert (answer.status, answer.body["type"]) == (503, "urn:tidemill:problem:paused"), answer
    assert answer.headers["Retry-After"] == "60"
    assert mill.stored() == stored
