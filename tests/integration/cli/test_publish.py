"""`publish` over real HTTP: the request, and the output for each answer."""

import json
from pathlib import Path

import pytest

from tests.integration.cli.conftest import run
from tests.integration.cli.loopback import Loopback

JOB = {"id": "0197", "type": "tidemill.event", "state": "queued"}
API = "/_aws/execute-api/a1b2/$default"


def test_an_event_is_posted_and_its_job_is_printed(server: Loopback) -> None:
    server.answers(202, JOB)

    result = run("publish", "order.placed", '{"order": 7.10}', "--key", "7", "--version", "2", "--group", "ada")

    assert (result.exit_code, json.loads(result.stdout), result.stderr) == (0, JOB, "")
    (request,) = server.requests
    assert (request.method, request.path) == ("POST", f"{API}/events")
    assert request.headers["Idempotency-Key"] == "7"
    # The number is as written: 7.10 has kept its digits.
    assert request.body == b'{"type": "order.placed", "data": {"order": 7.10}, "version": 2, "group": "ada"}'


def test_data_comes_from_a_file_and_defaults_to_an_empty_object(server: Loopback, tmp_path: Path) -> None:
    file = tmp_path / "data.json"
    file.write_text('{"order": "7"}')

    run("publish", "order.placed", f"@{file}")
    run("publish", "order.placed")

    assert [json.loads(request.body)["data"] for request in server.requests] == [{"order": "7"}, {}]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{"], "DATA"),
        (["{}", "--version", "0"], "0 is not in the range x>=1"),
        (["{}", "--key", "a b"], "invalid key"),
    ],
)
def test_what_cannot_be_an_event_is_not_sent(server: Loopback, arguments: list[str], message: str) -> None:
    result = run("publish", "order.placed", *arguments)

    assert result.exit_code == 2
    assert message in result.stderr
    assert server.requests == []


def test_the_faults_of_a_refused_event_are_printed(server: Loopback) -> None:
    fault = {"pointer": "#/data/order", "detail": "Field required"}
    server.answers(422, {"title": "Unprocessable Content", "detail": "the body is invalid", "errors": [fault]})

    result = run("publish", "order.placed")

    assert result.exit_code == 1
    assert "/data/order" in result.stderr


def test_without_an_answer_the_error_says_whether_a_repeat_may_publish_a_second_event(
    server: Loopback, environment: pytest.MonkeyPatch
) -> None:
    environment.setattr("tidemill.aws.http_client._READ_SECONDS", 0.1)
    server.release.clear()
    unkeyed, keyed = run("publish", "t"), run("publish", "t", "--key", "7")
    server.release.set()

    assert "it is unknown whether the event was accepted" in unkeyed.stderr
    assert "may create a second event" in unkeyed.stderr
    assert "creates no second event" in keyed.stderr
