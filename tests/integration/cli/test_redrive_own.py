"""`redrive --own`, with the functions behind the API."""

import json

import pytest

from tests.integration.cli.conftest import run, submit_dead_job
from tests.integration.cli.loopback import Loopback
from tests.support.deployed_functions import Mill
from tidemill.domain.states import State

OWN = ("redrive", "--own")


def test_a_dead_job_is_requeued_with_a_fresh_set_of_attempts(behind: Mill) -> None:
    job_id = submit_dead_job(behind)
    result = run(*OWN, job_id, "--yes")
    assert (result.exit_code, result.stdout) == (0, f"{job_id}  queued\n")
    assert (behind.job(job_id).state, behind.job(job_id).attempt) == (State.QUEUED, 0)


def test_a_job_that_is_not_dead_is_refused_and_unchanged(behind: Mill) -> None:
    job_id = behind.accepted()
    before = behind.job(job_id)
    result = run(*OWN, job_id, "--yes")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "409 Conflict: a job that is queued cannot be redriven" in result.stderr
    assert behind.job(job_id) == before


def test_json_prints_each_resulting_job_as_a_line(behind: Mill) -> None:
    ids = [submit_dead_job(behind) for _ in range(2)]
    result = run(*OWN, *ids, "nope", "--yes", "--json")
    assert result.exit_code == 1
    assert "1 of 3 jobs could not be redriven" in result.stderr
    jobs = [json.loads(line) for line in result.stdout.splitlines()]
    assert [(job["id"], job["state"]) for job in jobs] == [(job_id, "queued") for job_id in ids]
    assert jobs[0] == json.loads(run("get", ids[0]).stdout)


def test_an_unknown_id_is_explained(behind: Mill) -> None:
    result = run(*OWN, "nope", "--yes")
    assert result.exit_code == 1
    assert "404 Not Found: You own no job with this id. Check the id" in result.stderr


def test_without_a_terminal_it_requires_yes_and_sends_nothing(server: Loopback) -> None:
    result = run(*OWN, "0197")
    assert result.exit_code == 2
    assert "pass --yes to confirm" in result.stderr
    assert not server.requests


@pytest.mark.usefixtures("interactive")
def test_a_declined_confirmation_sends_nothing(server: Loopback) -> None:
    result = run("redrive", "--own", "a", "b", typed="n\n")
    assert result.exit_code == 0
    assert "Redrive 2 jobs?" in result.stderr
    assert not server.requests


@pytest.mark.parametrize(
    "arguments",
    [
        ["--own"],
        ["--own", "a", "--type", "t"],
        ["--own", "--all"],
        ["--own", "a", "--dry-run"],
        ["--own", "a", "b", "--limit", "1"],
        ["--own", "a", "b", "--rate", "1"],
        ["--own", "a", "--no-probe"],
        ["--own", "a", "--probe-timeout", "5m"],
    ],
    ids=" ".join,
)
def test_options_of_the_other_form_are_wrong_usage(server: Loopback, arguments: list[str]) -> None:
    result = run("redrive", *arguments, "--yes")
    assert result.exit_code == 2
    assert "--own" in result.stderr
    assert not server.requests


def test_the_alias_is_absent_from_the_help() -> None:
    listed = run("--help").stdout
    assert "  redrive " in listed
    assert "  retry " not in listed
