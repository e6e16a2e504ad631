"""`submit` and `get` over real HTTP: the request, its signature, and the output for each answer."""

import json
from datetime import UTC, datetime
from pathlib import Path

import click
import pytest

from tests.integration.cli.conftest import run
from tests.integration.cli.loopback import Loopback
from tests.support.deployed_functions import Mill

JOB = {"id": "0197", "type": "text.count", "state": "queued", "payload": {"text": "to be"}}
API = "/_aws/execute-api/a1b2/$default"


def test_submit_signs_the_request_and_prints_the_job_as_one_line_of_json(server: Loopback) -> None:
    server.answers(202, JOB)
    result = run("submit", "text.count", '{"text": "to be"}')
    assert result.exit_code == 0
    assert json.loads(result.stdout) == JOB
    assert result.stdout.count("\n") == 1
    assert not result.stderr
    (request,) = server.requests
    assert (request.method, request.path) == ("POST", f"{API}/jobs")
    assert json.loads(request.body) == {"type": "text.count", "payload": {"text": "to be"}}
    assert request.headers["Content-Type"] == "application/json"
    assert "Idempotency-Key" not in request.headers


def test_a_request_is_signed_for_execute_api_in_the_region_of_the_stack(server: Loopback) -> None:
    run("get", "0197")
    authorization = server.requests[0].headers["Authorization"]
    assert authorization.startswith("AWS4-HMAC-SHA256 Credential=testing/")
    assert "/eu-west-1/execute-api/aws4_request" in authorization
    assert "host" in authorization.partition("SignedHeaders=")[2]


def test_a_session_token_is_sent(server: Loopback, environment: pytest.MonkeyPatch) -> None:
    environment.setenv("AWS_SESSION_TOKEN", "token")
    run("get", "0197")
    assert server.requests[0].headers["X-Amz-Security-Token"] == "token"


def test_submit_sends_the_key_and_reports_a_replay(server: Loopback) -> None:
    server.answers(200, JOB, Idempotent_Replayed="true")
    result = run("submit", "text.count", "{}", "--key", "7")
    assert server.requests[0].headers["Idempotency-Key"] == "7"
    assert json.loads(result.stdout) == JOB
    assert "key was used before" in result.stderr


def test_a_payload_is_sent_as_written(server: Loopback) -> None:
    run("submit", "big", '{"n": 12345678901234567890.123456789}')
    assert b'{"n": 12345678901234567890.123456789}' in server.requests[0].body


def test_a_payload_comes_from_stdin_or_a_file_and_defaults_to_an_empty_object(server: Loopback, tmp_path: Path) -> None:
    file = tmp_path / "payload.json"
    file.write_bytes(b'\xef\xbb\xbf{"from": "a file with a byte order mark"}')
    run("submit", "t", "-", typed='{"from": "stdin"}')
    run("submit", "t", f"@{file}")
    run("submit", "t")
    payloads = [json.loads(request.body)["payload"] for request in server.requests]
    assert payloads == [{"from": "stdin"}, {"from": "a file with a byte order mark"}, {}]


@pytest.mark.parametrize("payload", ["{", "NaN", '{"n": Infinity}', "[" * 100_000, "@no/such/file", ""])
def test_a_payload_that_is_not_json_is_wrong_usage_and_sends_nothing(server: Loopback, payload: str) -> None:
    result = run("submit", "t", payload)
    assert result.exit_code == 2
    assert "PAYLOAD" in result.stderr
    assert not server.requests


def test_a_payload_that_is_not_utf_8_is_wrong_usage(server: Loopback) -> None:
    result = run("submit", "t", "-", typed=b'{"a": "\xff"}')
    assert result.exit_code == 2
    assert "not valid UTF-8" in result.stderr


@pytest.mark.parametrize("key", ["", "two\nlines", "two words", "ключ", "x" * 256])
def test_an_invalid_key_is_wrong_usage(server: Loopback, key: str) -> None:
    assert run("submit", "t", "--key", key).exit_code == 2
    assert not server.requests


def test_a_problem_is_printed_with_the_pointer_of_each_fault(server: Loopback) -> None:
    server.answers(
        422,
        {
            "title": "Unprocessable Content",
            "status": 422,
            "detail": "/payload/url: Field required; /payload/n: Input should be a number",
            "errors": [
                {"pointer": "#/payload/url", "detail": "Field required"},
                {"pointer": "#/payload/n", "detail": "Input should be a number"},
            ],
        },
    )
    result = run("submit", "t")
    assert result.exit_code == 1
    assert not result.stdout
    assert result.stderr.splitlines() == [
        "Error: the API answered 422 Unprocessable Content",
        "  #/payload/url: Field required",
        "  #/payload/n: Input should be a number",
    ]


def test_the_detail_of_a_problem_is_printed_if_it_differs_from_its_faults(server: Loopback) -> None:
    fault = {"pointer": "#/type", "detail": "known types: a"}
    server.answers(422, {"title": "Unprocessable Content", "detail": "unknown job type 't'", "errors": [fault]})
    assert "unknown job type 't'\n  #/type: known types: a" in run("submit", "t").stderr


def test_a_fault_of_the_whole_body_is_printed_once_without_a_path(server: Loopback) -> None:
    fault = {"pointer": "#", "detail": "the body must be a JSON object"}
    server.answers(422, {"title": "Unprocessable Content", "detail": fault["detail"], "errors": [fault]})
    assert run("submit", "t").stderr.splitlines() == [
        "Error: the API answered 422 Unprocessable Content",
        "  the body must be a JSON object",
    ]


def test_a_refusal_by_api_gateway_has_a_remedy(server: Loopback) -> None:
    server.answers(403, {"message": "Forbidden"})
    result = run("submit", "t")
    assert result.exit_code == 1
    assert "the API answered 403 Forbidden" in result.stderr
    assert "execute-api:Invoke" in result.stderr


def test_an_answer_that_is_not_json_is_an_error(server: Loopback) -> None:
    server.answer = (502, {}, b"<html>")
    assert "502 Bad Gateway" in run("get", "0197").stderr
    server.answer = (599, {}, b"")
    assert "the API answered 599" in run("get", "0197").stderr
    server.answer = (200, {}, b"<html>")
    result = run("get", "0197")
    assert result.exit_code == 1
    assert "not a JSON object" in result.stderr


def test_get_prints_the_job(server: Loopback) -> None:
    server.answers(200, JOB)
    result = run("get", "0197/ü")
    assert json.loads(result.stdout) == JOB
    assert server.requests[0].path == f"{API}/jobs/0197%2F%C3%BC"


def test_get_of_an_unknown_job_is_an_error(server: Loopback) -> None:
    server.answers(404, {"title": "Not Found", "detail": "no job of yours has this id"})
    result = run("get", "0197")
    assert result.exit_code == 1
    assert "404 Not Found: no job of yours has this id" in result.stderr


def test_without_an_answer_the_error_says_whether_a_repeat_may_create_a_second_job(
    server: Loopback, environment: pytest.MonkeyPatch
) -> None:
    environment.setattr("tidemill.aws.http_client._READ_SECONDS", 0.1)
    server.release.clear()
    unkeyed = run("submit", "t")
    keyed = run("submit", "t", "--key", "7")
    server.release.set()
    assert (unkeyed.exit_code, keyed.exit_code) == (1, 1)
    assert "it is unknown whether the job was accepted" in unkeyed.stderr
    assert "may create a second job" in unkeyed.stderr
    assert "creates no second job" in keyed.stderr


@pytest.mark.usefixtures("terminal")
def test_json_is_indented_on_a_terminal_and_escapes_control_characters(server: Loopback) -> None:
    server.answers(200, {"id": "x", "note": "\x1b[2J\x9b\u202e Zoë"})
    text = click.unstyle(run("get", "x").stdout)
    assert "\n  " in text
    assert '\\u001b[2J\\u009b\\u202e Zoë"' in text


def test_the_options_are_sent_with_the_job(server: Loopback) -> None:
    server.answers(202, JOB)
    run(
        "submit",
        "t",
        "--lane",
        "bulk",
        "--delay",
        "15m",
        "--group",
        "g",
        "--tag",
        "b",
        "--tag",
        "a",
        "--deadline",
        "2030-01-31T09:00:00+01:00",
        "--max-age",
        "1h",
    )
    run("submit", "t", "--run-at", "2030-01-31T08:00:00.5Z", "--unique-seconds", "60", "--unique-key", "u")
    debounce = ("--debounce", "30s", "--debounce-key", "7", "--debounce-max", "5m", "--replace", "payload")
    run("submit", "t", *debounce)
    delayed, timed, debounced = (json.loads(request.body) for request in server.requests)
    assert debounced == {
        "type": "t",
        "payload": {},
        "debounce_seconds": 30,
        "debounce_key": "7",
        "debounce_max_seconds": 300,
        "replace": "payload",
    }
    assert delayed == {
        "type": "t",
        "payload": {},
        "lane": "bulk",
        "delay_seconds": 900,
        "group": "g",
        "tags": ["b", "a"],
        "deadline": "2030-01-31T08:00:00.000Z",
        "max_age_seconds": 3600,
    }
    assert timed == {
        "type": "t",
        "payload": {},
        "run_at": "2030-01-31T08:00:00.500Z",
        "unique": {"period_seconds": 60, "key": "u"},
    }


@pytest.mark.parametrize(
    ("option", "member"),
    [("--delay", "delay_seconds"), ("--max-age", "max_age_seconds"), ("--debounce", "debounce_seconds")],
)
def test_a_duration_of_zero_is_sent_and_the_api_judges_it(server: Loopback, option: str, member: str) -> None:
    server.answers(202, JOB)
    assert run("submit", "t", option, "0s").exit_code == 0
    assert json.loads(server.requests[0].body)[member] == 0


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["t", "--delay", "15"],
        ["t", "--delay", "-5s"],
        ["t", "--run-at", "2030-01-31T08:00:00"],
        ["t", "--deadline", "soon"],
        ["t", "--unique-seconds", "0"],
        ["t", "--unique-key", "u"],
        ["t", "--debounce-key", "u"],
        ["t", "--debounce-max", "5m"],
        ["t", "--replace", "payload"],
        ["t", "--debounce", "5s", "--replace", "all"],
        ["t", "--lane", "slow"],
        ["t", "--delay", "5s", "--run-at", "2030-01-31T08:00:00Z"],
        ["t", "--key", "k", "--unique-seconds", "60"],
    ],
)
def test_invalid_arguments_are_wrong_usage_and_send_nothing(server: Loopback, arguments: list[str]) -> None:
    assert run("submit", *arguments).exit_code == 2
    assert not server.requests


def test_a_token_replaces_the_signature(server: Loopback, environment: pytest.MonkeyPatch) -> None:
    environment.setenv("TIDEMILL_TOKEN", "a.b.c")
    run("get", "0197")
    assert server.requests[0].headers["Authorization"] == "Bearer a.b.c"
    assert "X-Amz-Date" not in server.requests[0].headers


def test_a_401_names_the_token_variable(server: Loopback) -> None:
    server.answers(401, {"message": "Unauthorized"})
    assert "TIDEMILL_TOKEN" in run("get", "0197").stderr


def test_the_functions_store_the_job_as_submitted(behind: Mill) -> None:
    options = ["--lane", "bulk", "--delay", "2h", "--group", "g", "--deadline", "2099-01-31T08:00:00Z"]
    submitted = json.loads(run("submit", "test.noop", '{"n": 1}', *options).stdout)
    job = behind.job(submitted["id"])
    assert (job.lane, job.group.key, job.state) == ("bulk", "g", "scheduled")
    assert job.lifetime.deadline == datetime(2099, 1, 31, 8, tzinfo=UTC)
    assert json.loads(run("get", job.id).stdout)["payload"] == {"n": 1}


def test_a_unique_job_is_created_once(behind: Mill) -> None:
    first, again = (run("submit", "test.noop", "--unique-seconds", "3600") for _ in range(2))
    assert json.loads(first.stdout)["id"] == json.loads(again.stdout)["id"]
    assert "existing job" in again.stderr
    assert behind.stored() == 1


def test_a_burst_is_one_job(behind: Mill) -> None:
    first, again = (run("submit", "test.noop", "--debounce", "1h") for _ in range(2))
    assert json.loads(first.stdout)["id"] == json.loads(again.stdout)["id"]
    assert "earlier job" in again.stderr
    assert "earlier job" not in first.stderr


def test_a_lane_more_urgent_than_the_types_own_is_refused(behind: Mill) -> None:
    result = run("submit", "test.noop", "--lane", "critical")
    assert result.exit_code == 1
    assert "#/lane: jobs of this type run on default" in result.stderr
    assert behind.stored() == 0
