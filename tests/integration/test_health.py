"""`GET /health`: what it checks, each with its age, and 200 or 503."""

from datetime import timedelta
from typing import Any

import pytest

from tests.support.api_gateway import request
from tests.support.deployed_functions import Mill
from tidemill import composition
from tidemill.application.operations.health import KEPT, LATE_CANARY
from tidemill.domain.errors import JobFileError, StoreUnavailableError
from tidemill.dynamodb.operations import canary_marks
from tidemill.names import CANARY_PREFIX, JOB_KEY, Env, Lane
from tidemill.system import clock


@pytest.fixture(autouse=True)
def _canaries(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(Env.CANARY, "true")
    vars(composition.parts()).pop("health", None)


def _marked(mill: Mill, *, age: timedelta) -> None:
    for lane in Lane:
        at = (clock.now() - age).isoformat(timespec="seconds")
        mill.table.client.put_item(
            TableName=mill.table.name,
            Item={JOB_KEY: {"S": f"{CANARY_PREFIX}{lane}"}, "submitted_at": {"S": at}, "last": {"S": "job"}},
        )


def _failed(body: Any) -> list[str]:
    return [check["name"] for check in body["checks"] if not check["ok"]]


def test_a_healthy_installation_answers_200_with_each_check(mill: Mill) -> None:
    _marked(mill, age=timedelta(seconds=42))
    answer = request("GET", "/health")
    assert answer.status == 200
    assert answer.body["ok"] is True
    names = [check["name"] for check in answer.body["checks"]]
    assert names == ["job_files", "table", *(f"lane_{lane}" for lane in Lane)]
    assert _failed(answer.body) == []
    assert all(42 <= check["age_seconds"] < 60 for check in answer.body["checks"][2:])


def test_a_lane_without_a_recent_canary_is_named_with_its_age(mill: Mill) -> None:
    _marked(mill, age=LATE_CANARY)
    late = request("GET", "/health")
    assert late.status == 503
    assert _failed(late.body) == [f"lane_{lane}" for lane in Lane]
    assert late.body["checks"][-1]["age_seconds"] >= LATE_CANARY.total_seconds()


def test_before_the_first_canary_a_lane_has_no_age() -> None:
    answer = request("GET", "/health")
    assert answer.status == 503
    assert answer.body["checks"][-1] == {"name": "lane_bulk", "ok": False, "age_seconds": None}


def test_a_stage_without_canaries_checks_no_lane(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(Env.CANARY)
    answer = request("GET", "/health")
    assert (answer.status, [check["name"] for check in answer.body["checks"]]) == (200, ["job_files", "table"])


def test_a_table_that_cannot_be_read_is_the_only_answer_about_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def unavailable(*_: object, **__: object) -> None:
        raise StoreUnavailableError("no answer")

    monkeypatch.setattr(canary_marks, "submitted", unavailable)
    answer = request("GET", "/health")
    assert answer.status == 503
    assert _failed(answer.body) == ["table"]
    assert "no answer" not in str(answer.body)


def test_a_broken_job_file_is_shown_and_the_rest_is_healthy(mill: Mill, monkeypatch: pytest.MonkeyPatch) -> None:
    _marked(mill, age=timedelta(0))
    monkeypatch.setattr(composition.known_job_types(), "faults", (JobFileError("broken"),))
    answer = request("GET", "/health")
    assert (answer.status, _failed(answer.body)) == (200, ["job_files"])


def test_an_answer_is_kept_for_some_seconds(mill: Mill) -> None:
    mill.stop_clock()
    assert request("GET", "/health").status == 503
    _marked(mill, age=timedelta(0))
    assert request("GET", "/health").status == 503
    mill.late += KEPT
    assert request("GET", "/health").status == 200
