"""`submit --batch`: what is sent in how many requests, what each line is answered, and what is refused before."""

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
    """An API that accepts so many jobs and then does not answer for them any more."""

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


def test_lines_are_sent_in_hundreds_and_each_has_its_answer(server: Loopback) -> None:
    api = Accepting(server)
    result = run("submit", "--batch", "-", typed=lines(*({"type": f"t{n}"} for n in range(250))))
    assert result.exit_code == 0
    assert [len(batch) for batch in api.batches] == [100, 100, 50]
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(answer["line"], answer["job"]["id"]) for answer in answers] == [(n + 1, f"t{n}") for n in range(250)]
    assert "250 of 250 jobs accepted." in result.stderr


def test_a_request_holds_no_more_bytes_than_it_may(server: Loopback) -> None:
    api = Accepting(server)
    line = {"type": "t", "payload": {"text": "x" * 200_000}}
    assert run("submit", "--batch", "-", typed=lines(*[line] * 50)).exit_code == 0
    assert [len(batch) for batch in api.batches] == [20, 20, 10]
    assert max(len(request.body) for request in server.requests) <= LARGEST_BATCH_BODY_BYTES


def test_a_line_is_sent_as_it_was_written(server: Loopback, tmp_path: Path) -> None:
    file = tmp_path / "jobs.jsonl"
    file.write_bytes(b'\xef\xbb\xbf\n{"type": "t", "payload": {"n": 12345678901234567890.123456789}}\r\n\n')
    Accepting(server)
    run("submit", "--batch", str(file), "--key", "7")
    assert server.requests[0].body == (
        b'{"jobs": [{"idempotency_key": "7-2","type": "t", "payload": {"n": 12345678901234567890.123456789}}]}'
    )


def test_a_key_gives_each_line_one_of_its_own_unless_it_has_one(server: Loopback) -> None:
    api = Accepting(server)
    own = {"type": "b", "idempotency_key": "mine"}
    unique = {"type": "c", "unique": {"period_seconds": 60}}
    run("submit", "--batch", "-", "--key", "k", typed=lines({"type": "a"}, own, unique))
    (batch,) = api.batches
    assert batch == [{"idempotency_key": "k-1", "type": "a"}, own, unique]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"type": "a"}\n{', "line 2"),
        ('{"type": "a"}\n[]', "a line is a JSON object"),
        ('{"type": NaN}', "not JSON"),
        ("", "there is no line in it"),
        (b'{"type": "\xff"}', "not UTF-8"),
    ],
)
def test_a_line_that_is_no_submission_is_wrong_usage_and_nothing_is_sent(
    server: Loopback, text: str | bytes, said: str
) -> None:
    result = run("submit", "--batch", "-", typed=text)
    assert result.exit_code == 2
    assert said in result.stderr
    assert not server.requests


def test_a_line_that_no_request_can_hold_is_wrong_usage(server: Loopback) -> None:
    result = run("submit", "--batch", "-", typed=lines({"type": "x" * LARGEST_BATCH_BODY_BYTES}))
    assert result.exit_code == 2
    assert "line 1" in result.stderr


@pytest.mark.parametrize("more", [["text.count"], ["--lane", "bulk"], ["--wait"], ["--delay", "5s"]])
def test_what_a_line_would_say_is_wrong_usage_beside_it(server: Loopback, more: list[str]) -> None:
    result = run("submit", "--batch", "-", *more, typed=lines({"type": "a"}))
    assert result.exit_code == 2
    assert not server.requests


def test_stopped_on_the_way_it_says_how_far_it_came_and_what_a_repeat_does(server: Loopback) -> None:
    Accepting(server, most=100)
    submitted = lines(*({"type": "t"} for _ in range(250)))
    keyed = run("submit", "--batch", "-", "--key", "k", typed=submitted)
    assert keyed.exit_code == 1
    assert len(keyed.stdout.splitlines()) == 100
    assert "only the first 100 of 250 lines have an answer; of the next 100 at most" in keyed.stderr
    assert "503 Service Unavailable" in keyed.stderr
    assert "not submitted twice" in keyed.stderr
    Accepting(server, most=0)
    assert "With a --key" in run("submit", "--batch", "-", typed=submitted).stderr


def test_each_line_is_accepted_or_refused_for_itself(behind: Mill) -> None:
    submitted = lines({"type": "test.noop"}, {"type": "nope"}, {"type": "test.noop", "delay_seconds": -1}, {"x": 1})
    result = run("submit", "--batch", "-", typed=submitted)
    assert result.exit_code == 1
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(answer["line"], answer["status"]) for answer in answers] == [(1, 202), (2, 422), (3, 422), (4, 422)]
    assert "line 2: 422 Unprocessable" in result.stderr
    assert "1 of 4 jobs accepted" in result.stderr
    assert behind.stored() == 1


def test_run_again_with_its_key_a_file_makes_no_second_jobs(behind: Mill) -> None:
    submitted = lines(*({"type": "test.noop", "payload": {"n": n}} for n in range(120)))
    first, again = (run("submit", "--batch", "-", "--key", "k", typed=submitted) for _ in range(2))
    assert (first.exit_code, again.exit_code) == (0, 0)
    assert behind.stored() == 120
    assert "120 of 120 jobs accepted, 120 of them there already." in again.stderr
