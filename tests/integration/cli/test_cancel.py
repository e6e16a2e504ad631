"""`cancel` with the functions behind the API."""

import json

import pytest

from tests.integration.cli.conftest import run, submit_dead_job
from tests.integration.cli.loopback import Loopback
from tests.support.deployed_functions import Mill
from tidemill.domain.states import State


def test_a_queued_job_is_cancelled_and_a_repeat_prints_the_same(behind: Mill) -> None:
    job_id = behind.accepted()
    for _ in range(2):
        result = run("cancel", job_id, "--yes")
        assert (result.exit_code, result.stdout) == (0, f"{job_id}  cancelled\n")
    assert behind.job(job_id).state is State.CANCELLED


def test_a_job_that_succeeded_cannot_be_cancelled(behind: Mill) -> None:
    job_id = behind.accepted()
    behind.run()
    result = run("cancel", job_id, "--yes")
    assert result.exit_code == 1
    assert "a job that is succeeded cannot be cancelled" in result.stderr


def test_the_other_jobs_are_cancelled_if_the_api_refuses_one(behind: Mill) -> None:
    ids = [behind.accepted() for _ in range(2)]
    result = run("cancel", ids[0], "nope", ids[1], ids[0], "--yes")
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [f"{job_id}  cancelled" for job_id in ids]
    assert "nope  the API answered 404" in result.stderr
    assert "1 of 3 jobs could not be cancelled" in result.stderr


def test_a_running_job_is_shown_with_its_cancel_request(server: Loopback) -> None:
    job = {"id": "0197", "state": "running", "attempt": 1, "cancel_requested_at": "2026-01-31T12:00:00.000Z"}
    server.answers(200, job)
    assert run("cancel", "0197", "--yes").stdout == "0197  running, cancel requested, attempt 1\n"
    assert [(request.method, request.path.rpartition("$default")[2]) for request in server.requests] == [
        ("POST", "/jobs/0197/cancel")
    ]


def test_a_refusal_of_the_caller_stops_the_command(server: Loopback) -> None:
    server.answers(403, {"message": "Forbidden"})
    assert run("cancel", "a", "b", "--yes").exit_code == 1
    assert len(server.requests) == 1


@pytest.mark.usefixtures("interactive")
def test_a_declined_confirmation_sends_nothing(server: Loopback) -> None:
    server.answers(200, {"id": "a", "state": "cancelled"})
    result = run("cancel", "a", "b", typed="n\n")
    assert result.exit_code == 0
    assert "Cancel 2 jobs?" in result.stderr
    assert "Nothing was changed." in result.stderr
    assert not server.requests
    assert run("cancel", "a", typed="y\n").stdout == "a  cancelled\n"


def test_the_json_of_a_cancelled_job_has_its_end_time(behind: Mill) -> None:
    job_id = behind.accepted()
    run("cancel", job_id, "--yes")
    job = json.loads(run("get", job_id).stdout)
    assert job["state"] == "cancelled"
    assert job["finished_at"]


def test_json_prints_each_resulting_job_as_a_line(behind: Mill) -> None:
    ids = [submit_dead_job(behind) for _ in range(2)]
    result = run("cancel", *ids, "nope", "--yes", "--json")
    assert result.exit_code == 1
    jobs = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(job["id"], job["state"]) for job in jobs] == [(job_id, "cancelled") for job_id in ids]
    assert jobs[0] == json.loads(run("get", ids[0]).stdout)


def test_an_unknown_id_is_explained(behind: Mill) -> None:
    result = run("cancel", "nope", "--yes")
    assert result.exit_code == 1
    assert "404 Not Found: You own no job with this id. Check the id" in result.stderr


def test_without_a_terminal_it_requires_yes_and_sends_nothing(server: Loopback) -> None:
    result = run("cancel", "0197")
    assert result.exit_code == 2
    assert "pass --yes to confirm" in result.stderr
    assert not server.requests
