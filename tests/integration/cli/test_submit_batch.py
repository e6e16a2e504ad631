"""`submit --batch`: the requests, the answer to each line, and the input errors."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.integration.cli.conftest import run
from tests.integration.cli.loopback import Answer, Loopback, Request
from tests.support.deployed_functions import Mill
from tidemill.names import LARGEST_BATCH_BODY_BYTES


def lines(*submissions: Any) -> str:
    return "".join(json.dumps(submission) + "\n" for submission in submissions)


class Accepting:
    """An API that accepts `most` jobs and then answers 503."""

    def __init__(self, server: Loopback, *, most: int = 1_000_000) -> None:
        self.batches: list[list[Any]] = []
        self._most = most
        server.respond = self._respond

    def _respond(self, request: Request) -> Answer:
        assert request.path.endswith("/jobs/batch")
        jobs = json.loads(request.body)["jobs"]
        if sum(map(len, self.batches)) + len(jobs) > self._most:
            return 503, {}, b"{}"
        self.batches.append(jobs)
        answers = [{"status": 202, "job": {"id": f"{job['type']}"}} for job in jobs]
        return 200, {}, json.dumps({"jobs": answers}).encode()


def test_a_request_has_a_hundred_lines_and_each_line_has_an_answer(server: Loopback) -> None:
    api = Accepting(server)
    result = run("submit", "--batch", "-", typed=lines(*({"type": f"t{n}"} for n in range(250))))
    assert result.exit_code == 0
    assert [len(batch) for batch in api.batches] == [100, 100, 50]
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(answer["line"], answer["job"]["id"]) for answer in answers] == [(n + 1, f"t{n}") for n in range(250)]
    assert "250 of 250 jobs accepted." in result.stderr


def test_a_request_stays_within_the_byte_limit(server: Loopback) -> None:
    api = Accepting(server)
    line = {"type": "t", "payload": {"text": "x" * 200_000}}
    assert run("submit", "--batch", "-", typed=lines(*[line] * 12)).exit_code == 0
    assert [len(batch) for batch in api.batches] == [5, 5, 2]
    assert max(len(request.body) for request in server.requests) <= LARGEST_BATCH_BODY_BYTES


def test_a_line_is_sent_as_written(server: Loopback, tmp_path: Path) -> None:
    file = tmp_path / "jobs.jsonl"
    file.write_bytes(b'\xef\xbb\xbf\n{"type": "t", "payload": {"n": 12345678901234567890.123456789}}\r\n\n')
    Accepting(server)
    run("submit", "--batch", str(file), "--key", "7")
    assert server.requests[0].body == (
        b'{"jobs": [{"idempotency_key": "7-2","type": "t", "payload": {"n": 12345678901234567890.123456789}}]}'
    )


def test_a_key_gives_each_line_a_key_of_its_own_unless_it_has_one(server: Loopback) -> None:
    api = Accepting(server)
    own = {"type": "b", "idempotency_key": "mine"}
    unique = {"type": "c", "unique": {"period_seconds": 60}}
    run("submit", "--batch", "-", "--key", "k", typed=lines({"type": "a"}, own, unique))
    (batch,) = api.batches
    assert batch == [{"idempotency_key": "k-1", "type": "a"}, own, unique]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"type": "a"}\n{', "line 2"),
        ('{"type": "a"}\n[]', "each line must be a JSON object"),
        ('{"type": NaN}', "not valid JSON"),
        ("", "the input has no lines"),
        (b'{"type": "\xff"}', "not valid UTF-8"),
    ],
)
def test_an_invalid_line_is_wrong_usage_and_sends_nothing(server: Loopback, text: str | bytes, message: str) -> None:
    result = run("submit", "--batch", "-", typed=text)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "; nothing was sent" in result.stderr
    assert not server.requests


def test_a_line_above_the_byte_limit_is_wrong_usage(server: Loopback) -> None:
    result = run("submit", "--batch", "-", typed=lines({"type": "x" * LARGEST_BATCH_BODY_BYTES}))
    assert result.exit_code == 2
    assert "line 1" in result.stderr


@pytest.mark.parametrize("more", [["text.count"], ["--lane", "bulk"], ["--wait"], ["--delay", "5s"]])
def test_job_options_beside_a_batch_are_wrong_usage(server: Loopback, more: list[str]) -> None:
    result = run("submit", "--batch", "-", *more, typed=lines({"type": "a"}))
    assert result.exit_code == 2
    assert not server.requests


def test_a_failure_reports_the_answered_lines_and_the_effect_of_a_repeat(server: Loopback) -> None:
    Accepting(server, most=100)
    submitted = lines(*({"type": "t"} for _ in range(250)))
    keyed = run("submit", "--batch", "-", "--key", "k", typed=submitted)
    assert keyed.exit_code == 1
    assert len(keyed.stdout.splitlines()) == 100
    assert (
        "only the first 100 of 250 lines; it is unknown whether it accepted up to 100 lines after them" in keyed.stderr
    )
    assert "503 Service Unavailable" in keyed.stderr
    assert "accepted lines create no second jobs" in keyed.stderr
    Accepting(server, most=0)
    assert "A --key prevents that" in run("submit", "--batch", "-", typed=submitted).stderr


def test_each_line_is_accepted_or_refused_independently(behind: Mill) -> None:
    submitted = lines({"type": "test.noop"}, {"type": "nope"}, {"type": "test.noop", "delay_seconds": -1}, {"x": 1})
    result = run("submit", "--batch", "-", typed=submitted)
    assert result.exit_code == 1
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(answer["line"], answer["status"]) for answer in answers] == [(1, 202), (2, 422), (3, 422), (4, 422)]
    assert "line 2: 422 Unprocessable" in result.stderr
    assert "1 of 4 jobs accepted" in result.stderr
    assert behind.stored() == 1


def test_a_repeat_with_the_same_key_creates_no_second_jobs(behind: Mill) -> None:
    submitted = lines(*({"type": "test.noop", "payload": {"n": n}} for n in range(120)))
    first, again = (run("submit", "--batch", "-", "--key", "k", typed=submitted) for _ in range(2))
    assert (first.exit_code, again.exit_code) == (0, 0)
    assert behind.stored() == 120
    assert "120 of 120 jobs accepted, 120 of them existed already." in again.stderr
