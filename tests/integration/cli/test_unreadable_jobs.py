"""Commands for many jobs name each job that they cannot read, change the others, count it, and fail."""

import json
from collections.abc import Callable

import pytest

from tests.integration.cli.conftest import Cloud, run
from tests.integration.cli.test_purge import ended
from tidemill.aws import clients
from tidemill.domain.job import Job
from tidemill.dynamodb import document

REDRIVE = ("redrive", "--all", "--no-probe")
CANCEL = ("cancel", "--state", "dead")
PURGE = ("purge", "--older-than", "30d")


def spoilt(cloud: Cloud, job: Job) -> Job:
    clients.dynamodb().update_item(
        TableName=cloud.table.name,
        Key=document.key(job.tenant, job.id),
        UpdateExpression="SET attempt = :none",
        ExpressionAttributeValues={":none": {"S": "none"}},
    )
    return job


COMMANDS: list[tuple[tuple[str, ...], Callable[[Cloud], Job]]] = [
    (REDRIVE, Cloud.dead_job),
    (CANCEL, Cloud.dead_job),
    (PURGE, ended),
]


@pytest.mark.parametrize(("command", "a_job"), COMMANDS, ids=lambda value: value[0] if isinstance(value, tuple) else "")
def test_it_is_named_once_and_counted_and_the_command_fails(
    cloud: Cloud, command: tuple[str, ...], a_job: Callable[[Cloud], Job]
) -> None:
    a_job(cloud)
    unreadable = spoilt(cloud, a_job(cloud))

    for written in (1, 0):
        result = run(*command, "--yes", "--json")

        assert result.exit_code == 1
        assert json.loads(result.stdout) == {"written": written, "skipped": 0, "left": [], "unreadable": 1}
        assert result.stderr.count(f"Skipped job {unreadable.id}") + result.stderr.count(f"#{unreadable.id}:") == 1
        assert "Error: 1 job could not be read, and stay as they are" in result.stderr

    (entry,) = [json.loads(line) for line in run("audit", "--json").stdout.splitlines()]
    assert (entry["outcome"] == "done", entry["counts"]["unreadable"]) == (False, 1)


@pytest.mark.parametrize(("command", "a_job"), COMMANDS, ids=lambda value: value[0] if isinstance(value, tuple) else "")
def test_a_dry_run_shows_the_others(cloud: Cloud, command: tuple[str, ...], a_job: Callable[[Cloud], Job]) -> None:
    a_job(cloud)
    unreadable = spoilt(cloud, a_job(cloud))

    result = run(*command, "--dry-run", "--json")

    assert result.exit_code == 0
    assert json.loads(result.stdout)["jobs"] == 1
    assert unreadable.id in result.stderr


def test_an_id_of_one_is_not_said_to_be_unknown(cloud: Cloud) -> None:
    unreadable = spoilt(cloud, cloud.dead_job())

    result = run("redrive", unreadable.id, "--tenant", unreadable.tenant, "--yes")

    assert result.exit_code == 1
    assert "no dead job" not in result.stderr
    assert "Error: 1 job could not be read" in result.stderr
