"""`list --batch` and `list --event`: own ones over the API, and those of any tenant from the table."""

import json

import pytest

from tests.integration.cli.conftest import Cloud, run
from tests.integration.test_members import a_batch, an_event
from tests.support.api_gateway import sign_cursors
from tests.support.builders import a_job
from tests.support.deployed_functions import Mill, forget
from tidemill.names import BATCH_PACKAGE, BATCH_TYPE, Env
from tidemill.system.ids import new_job_id


@pytest.fixture
def batches(behind: Mill, monkeypatch: pytest.MonkeyPatch) -> Mill:
    monkeypatch.setenv(Env.JOB_PACKAGES, f"tests.support.jobs,{BATCH_PACKAGE}")
    sign_cursors(monkeypatch)
    forget()
    return behind


def shown(*arguments: str) -> list[str]:
    result = run("list", "--json", *arguments)
    assert result.exit_code == 0, result.stderr
    return [json.loads(line)["id"] for line in result.stdout.splitlines()]


def test_the_command_line_lists_own_jobs(batches: Mill) -> None:
    batch = a_batch(batches)
    batches.accepted()
    jobs = sorted((batches.accepted(batch=batch) for _ in range(3)), reverse=True)
    event, consumed = an_event("test.noop")

    assert shown("--batch", batch) == jobs
    assert shown("--event", event.id) == consumed
    assert shown("--batch", batch, "--state", "dead") == []
    assert run("list", "--batch", batch, "--event", event.id).exit_code == 2
    assert "You own no batch with this id" in run("list", "--batch", "none").stderr


def test_operators_list_the_jobs_of_any_batch(cloud: Cloud) -> None:
    batch = cloud.store.insert_if_absent(a_job(id=new_job_id(), tenant="a:other", type=BATCH_TYPE))
    members = (a_job(id=new_job_id(), tenant="a:other", batch=batch.id) for _ in range(3))
    jobs = sorted((cloud.store.insert_if_absent(each, batch=batch).id for each in members), reverse=True)
    alone = cloud.store.insert_if_absent(a_job(tenant="a:other"))

    assert shown("--batch", batch.id, "--tenant", "a:other") == shown("--batch", batch.id, "--all-tenants") == jobs
    assert shown("--batch", batch.id, "--all-tenants", "--state", "dead") == []
    assert len(shown("--batch", batch.id, "--all-tenants", "--limit", "2")) == 2
    refused = run("list", "--batch", alone.id, "--all-tenants")
    assert (refused.exit_code, "neither a batch nor an event" in refused.stderr) == (1, True)
