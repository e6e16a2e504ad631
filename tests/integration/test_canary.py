"""A canary takes the path of any job: accepted, dispatched, and with one effect however often it runs."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest

from tests.support.builders import SECOND, TENANT
from tests.support.deployed_functions import Mill, forget
from tests.support.faulty_client import Fault
from tests.support.http_events import call
from tidemill.application.operations.health import LATE_CANARY, LATEST_MARK
from tidemill.aws.http_client import Answer, NoAnswerError
from tidemill.entrypoints import canary, submit
from tidemill.names import CANARY_PACKAGE, CANARY_TENANT, CANARY_TYPE, Env, Lane


@dataclass(frozen=True)
class Invocation:
    aws_request_id: str = "invocation"


@dataclass
class GatewayInProcess:
    """Passes requests to the function `submit`. Those of `deaf` lanes get no answer."""

    deaf: set[Lane] = field(default_factory=set)
    statuses: list[int] = field(default_factory=list)

    def request(self, method: str, path: str, *, body: bytes, headers: Mapping[str, str]) -> Answer:
        if json.loads(body)["lane"] in self.deaf:
            raise NoAnswerError("no answer")
        lowered = {name.lower(): value for name, value in headers.items()}
        answer = call(submit, method, path, body=body.decode(), headers=lowered)
        self.statuses.append(answer.status)
        return Answer(status=answer.status, headers=answer.headers, body=json.dumps(answer.body).encode())


@pytest.fixture
def gateway(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> GatewayInProcess:
    monkeypatch.setenv(Env.JOB_PACKAGES, CANARY_PACKAGE)
    monkeypatch.setenv(Env.API_URL, "https://api.example")
    monkeypatch.setenv(Env.CANARY, TENANT)
    forget()
    gateway = GatewayInProcess()
    monkeypatch.setattr(canary, "_api", lambda: gateway)
    return gateway


def _effect(mill: Mill, lane: Lane) -> Any:
    answer = mill.table.client.get_item(TableName=mill.table.name, Key={"pk": {"S": f"!canary#{lane}"}})
    return answer.get("Item")


def _documents(mill: Mill) -> list[Any]:
    items = mill.table.client.scan(TableName=mill.table.name)["Items"]
    return [item for item in items if "state" in item]


def test_each_lane_gets_a_canary_and_one_without_an_answer_delays_no_other(
    mill: Mill, gateway: GatewayInProcess, caplog: pytest.LogCaptureFixture
) -> None:
    gateway.deaf = {Lane.CRITICAL}
    canary.handle({}, Invocation())
    assert gateway.statuses == [202, 202]
    assert caplog.messages.count("canary not accepted") == 1
    assert {(item["type"]["S"], item["lane"]["S"]) for item in _documents(mill)} == {
        (CANARY_TYPE, Lane.DEFAULT),
        (CANARY_TYPE, Lane.BULK),
    }


def test_a_call_that_the_scheduler_delivers_twice_makes_one_canary(mill: Mill, gateway: GatewayInProcess) -> None:
    canary.handle({}, Invocation())
    canary.handle({}, Invocation())
    assert gateway.statuses == [202] * 3 + [200] * 3
    assert len(_documents(mill)) == 3


def test_a_canary_takes_effect_once_and_is_kept_for_an_hour(mill: Mill, gateway: GatewayInProcess) -> None:
    gateway.deaf = {Lane.CRITICAL, Lane.BULK}
    for number in range(2):
        canary.handle({}, Invocation(f"invocation-{number}"))
        records = mill.records()
        # The message is delivered twice.
        mill.publish(records)
        mill.publish(records)
        mill.run()
        assert _effect(mill, Lane.DEFAULT)["count"] == {"N": str(number + 1)}
    for item in _documents(mill):
        assert item["state"]["S"] == "succeeded"
        kept_seconds = int(item["expires_at"]["N"]) - int(item["finished_at"]["N"]) // 1000
        assert kept_seconds == pytest.approx(3600, abs=2)


def test_a_canary_that_waited_behind_a_pause_neither_marks_its_lane_nor_counts(
    mill: Mill, gateway: GatewayInProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    """After a pause the parked ones run behind the present ones."""
    mill.stop_clock()
    gateway.deaf = {Lane.CRITICAL, Lane.BULK}
    canary.handle({}, Invocation("old"))
    old = mill.records()
    mill.late += LATE_CANARY
    canary.handle({}, Invocation("new"))
    for records in (mill.records(), old):
        mill.publish(records)
        mill.run()

    mark = _effect(mill, Lane.DEFAULT)
    assert (mark["count"], mark["submitted_at"]) == ({"N": "1"}, {"S": mill.now().isoformat(timespec="seconds")})
    assert {item["state"]["S"] for item in _documents(mill)} == {"succeeded", "cancelled"}
    lines = map(json.loads, capsys.readouterr().out.splitlines())
    assert sum("CanaryLatency" in line or "JobsCancelled" in line for line in lines) == 1


def test_a_canary_of_another_caller_neither_marks_a_lane_nor_counts(
    mill: Mill, gateway: GatewayInProcess, capsys: pytest.CaptureFixture[str]
) -> None:
    """It names a lane on which it does not run, or waits for a time of its own."""
    body = json.dumps({"type": CANARY_TYPE, "lane": Lane.DEFAULT, "payload": {"lane": Lane.CRITICAL}})
    headers = {"content-type": "application/json"}
    accepted = call(
        submit, "POST", "/jobs", body=body, headers=headers, iam={"accountId": "1", "userId": "AROAMALLORY:x"}
    )
    mill.run()

    assert (accepted.status, gateway.statuses) == (202, [])
    assert [item["state"]["S"] for item in _documents(mill)] == ["cancelled"]
    assert [_effect(mill, lane) for lane in Lane] == [None] * len(Lane)
    assert "CanaryLatency" not in capsys.readouterr().out


@pytest.mark.parametrize(("age", "marks"), [(LATEST_MARK - SECOND, True), (LATEST_MARK, False)])
def test_a_canary_that_ends_after_newer_ones_does_not_make_its_lane_look_late(
    mill: Mill, gateway: GatewayInProcess, age: timedelta, *, marks: bool
) -> None:
    mill.stop_clock()
    gateway.deaf = {Lane.CRITICAL, Lane.BULK}
    canary.handle({}, Invocation())
    submitted_at = mill.now()
    mill.late += age
    mill.run()

    assert (_effect(mill, Lane.DEFAULT) is not None) is marks
    # Until the next one, a minute later, ends within another.
    assert submitted_at + LATEST_MARK + timedelta(minutes=2) <= submitted_at + LATE_CANARY


@pytest.fixture
def _without_api(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stage whose callers send tokens."""
    monkeypatch.setenv(Env.JOB_PACKAGES, CANARY_PACKAGE)
    monkeypatch.delenv(Env.API_URL, raising=False)
    monkeypatch.setenv(Env.CANARY, CANARY_TENANT)
    forget()


@pytest.mark.usefixtures("_without_api")
def test_where_callers_send_tokens_each_lane_gets_a_canary_without_the_api(
    mill: Mill, capsys: pytest.CaptureFixture[str]
) -> None:
    canary.handle({}, Invocation())
    # The scheduler may deliver a call twice.
    canary.handle({}, Invocation())
    mill.publish([record for record in mill.records() if record["dynamodb"]["NewImage"]["lane"]["S"] == Lane.DEFAULT])
    mill.work(mill.receive())

    assert {(item["lane"]["S"], item["pk"]["S"].partition("#")[0]) for item in _documents(mill)} == {
        (lane, CANARY_TENANT) for lane in Lane
    }
    assert _effect(mill, Lane.DEFAULT)["count"] == {"N": "1"}
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["message"] for line in lines].count("accepted") == 3
    assert sum("CanaryLatency" in line for line in lines) == 1
    assert not any("JobsSubmitted" in line or "JobsAdded" in line for line in lines)


@pytest.mark.usefixtures("_without_api")
def test_where_callers_send_tokens_a_canary_that_the_store_does_not_accept_delays_no_other(
    mill: Mill, caplog: pytest.LogCaptureFixture
) -> None:
    mill.client.faults = [Fault.NOT_SENT]
    canary.handle({}, Invocation())

    assert caplog.messages.count("canary not accepted") == 1
    assert len(_documents(mill)) == 2
