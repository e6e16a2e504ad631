"""`cancel` and `retry` through the functions behind the API."""

import json

import pytest

from tests.integration.cli.conftest import run
from tests.integration.cli.loopback import Loopback
from tests.support.deployed_functions import Mill
from tidemill.domain.states import State


def dead(behind: Mill) -> str:
    def broken(*_: object) -> None:
        raise ValueError("no such thing")

    behind.script.handler = broken
    job_id = behind.accepted()
    behind.run()
    assert behind.job(job_id).state is State.DEAD
    return job_id


def test_a_queued_job_is_cancelled_and_a_repeat_says_the_same(behind: Mill) -> None:
    job_id = behind.accepted()
    for _ in range(2):
        result = run("cancel", job_id, "--yes")
        assert (result.exit_code, result.stdout) == (0, f"{job_id}  cancelled\n")
    assert behind.job(job_id).state is State.CANCELLED


@pytest.mark.parametrize(("command", "state"), [("cancel", "cancelled"), ("retry", "queued")])
def test_as_json_each_job_is_a_line_as_it_is_then(behind: Mill, command: str, state: str) -> None:
    ids = [dead(behind) for _ in range(2)]
    result = run(command, *ids, "nope", "--yes", "--json")
    assert result.exit_code == 1
    jobs = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(job["id"], job["state"]) for job in jobs] == [(job_id, state) for job_id in ids]
    assert jobs[0] == json.loads(run("get", ids[0]).stdout)


def test_a_dead_job_is_given_another_life(behind: Mill) -> None:
    job_id = dead(behind)
    result = run("retry", job_id, "--yes")
    assert (result.exit_code, result.stdout) == (0, f"{job_id}  queued\n")
    assert (behind.job(job_id).state, behind.job(job_id).attempt) == (State.QUEUED, 0)


def test_a_job_that_is_not_dead_cannot_be_retried_and_stays_as_it_is(behind: Mill) -> None:
    job_id = behind.accepted()
    before = behind.job(job_id)
    result = run("retry", job_id, "--yes")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "409 Conflict: a job that is queued cannot be retried" in result.stderr
    assert behind.job(job_id) == before


def test_a_job_that_succeeded_cannot_be_cancelled(behind: Mill) -> None:
    job_id = behind.accepted()
    behind.run()
    result = run("cancel", job_id, "--yes")
    assert result.exit_code == 1
    assert "a job that is succeeded cannot be cancelled" in result.stderr


def test_an_unknown_id_is_explained(behind: Mill) -> None:
    for command in ("cancel", "retry"):
        result = run(command, "nope", "--yes")
        assert result.exit_code == 1
        assert "404 Not Found: no job of yours has this id" in result.stderr


def test_of_many_each_is_dealt_with_and_those_refused_are_named(behind: Mill) -> None:
    ids = [behind.accepted() for _ in range(2)]
    result = run("cancel", ids[0], "nope", ids[1], ids[0], "--yes")
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [f"{job_id}  cancelled" for job_id in ids]
    assert "nope  the API answered 404" in result.stderr
    assert "1 of 3 jobs could not be cancelled" in result.stderr


def test_a_running_job_is_said_to_have_been_asked(server: Loopback) -> None:
    job = {"id": "0197", "state": "running", "attempt": 1, "cancel_requested_at": "2026-01-31T12:00:00.000Z"}
    server.answers(200, job)
    assert run("cancel", "0197", "--yes").stdout == "0197  running, asked to end, attempt 1\n"
    assert [(request.method, request.path.rpartition("$default")[2]) for request in server.requests] == [
        ("POST", "/jobs/0197/cancel")
    ]


def test_a_refusal_that_is_not_of_the_job_ends_it(server: Loopback) -> None:
    server.answers(403, {"message": "Forbidden"})
    assert run("cancel", "a", "b", "--yes").exit_code == 1
    assert len(server.requests) == 1


@pytest.mark.parametrize("command", ["cancel", "retry"])
def test_with_nobody_to_ask_it_is_wrong_usage_and_sends_nothing(server: Loopback, command: str) -> None:
    result = run(command, "0197")
    assert result.exit_code == 2
    assert "say --yes" in result.stderr
    assert not server.requests


@pytest.mark.usefixtures("attended")
def test_it_asks_and_takes_no_for_an_answer(server: Loopback) -> None:
    server.answers(200, {"id": "a", "state": "cancelled"})
    result = run("cancel", "a", "b", typed="n\n")
    assert result.exit_code == 0
    assert "Cancel 2 jobs?" in result.stderr
    assert "Nothing was changed." in result.stderr
    assert not server.requests
    assert run("cancel", "a", typed="y\n").stdout == "a  cancelled\n"


def test_the_json_of_a_cancelled_job_says_when_it_ended(behind: Mill) -> None:
    job_id = behind.accepted()
    run("cancel", job_id, "--yes")
    job = json.loads(run("get", job_id).stdout)
    assert job["state"] == "cancelled"
    assert job["finished_at"]
