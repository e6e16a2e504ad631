"""`batch`: the caller's own batches over the API."""

import json
from datetime import timedelta

import pytest

from tests.integration.cli.conftest import run
from tests.support.builders import TENANT
from tests.support.deployed_functions import Mill, forget
from tests.support.http_events import call
from tidemill.domain.batches import composite_cancels
from tidemill.entrypoints import submit
from tidemill.names import BATCH_PACKAGE, Env


@pytest.fixture(autouse=True)
def _batches(behind: Mill, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(composite_cancels, "_LONGEST_PAUSE", timedelta(0))
    monkeypatch.setattr(composite_cancels, "_PAUSE_OF_JOB", timedelta(0))
    monkeypatch.setenv(Env.JOB_PACKAGES, f"tests.support.jobs,{BATCH_PACKAGE}")
    forget()


def opened() -> str:
    headers = {"content-type": "application/json"}
    return str(call(submit, "POST", "/batches", body="{}", headers=headers).body["id"])


def test_a_batch_is_counted_and_closed(behind: Mill) -> None:
    batch = opened()
    assert run("batch", batch).stdout == f"{batch}  open, 0 of 0 jobs at rest\n"
    behind.accepted(batch=batch)
    behind.run()
    behind.accepted(batch=batch)
    result = run("batch", batch, "--close")
    assert result.stdout == f"{batch}  closed, 1 of 2 jobs at rest: 1 queued, 1 succeeded\n", result.stderr
    behind.run()
    assert json.loads(run("batch", batch, "--json").stdout)["counts"] == {"succeeded": 2}
    again = run("batch", batch, "--close")
    assert (again.exit_code, again.stdout) == (0, f"{batch}  succeeded, 2 of 2 jobs at rest: 2 succeeded\n")


def test_operators_see_a_batch_of_any_tenant(behind: Mill) -> None:
    batch = opened()
    job = behind.accepted(batch=batch)
    result = run("batch", batch, "--tenant", TENANT)
    assert result.stdout == f"{batch}  open, 0 of 1 jobs at rest: 1 queued\n", result.stderr
    assert "tenant other has no job" in run("batch", batch, "--tenant", "other").stderr
    assert run("batch", batch, "--tenant", TENANT, "--close").exit_code == 2
    assert "no batch" in run("batch", job, "--tenant", TENANT).stderr


def test_a_batch_is_cancelled(behind: Mill) -> None:
    batch = opened()
    behind.accepted(batch=batch, delay_seconds=3600)
    behind.run()
    assert "being cancelled" in run("batch", batch, "--cancel").stdout
    behind.run()
    assert run("batch", batch).stdout == f"{batch}  cancelled, 1 of 1 jobs at rest: 1 cancelled\n"


def test_a_job_that_was_deleted_is_at_rest_as_in_the_progress_of_its_batch(behind: Mill) -> None:
    batch = opened()
    gone = behind.accepted(batch=batch)
    behind.table.client.delete_item(TableName=behind.table.name, Key={"pk": {"S": f"{TENANT}#{gone}"}})
    behind.run()
    assert (behind.job(batch).progress.done, behind.job(batch).progress.total) == (1, 1)
    assert run("batch", batch).stdout == f"{batch}  open, 1 of 1 jobs at rest: 1 missing\n"


def test_wrong_usage_and_an_unknown_batch_are_refused(behind: Mill) -> None:
    assert run("batch", "none", "--close", "--cancel").exit_code == 2
    assert "no batch with this id" in run("batch", "none").stderr
    assert behind.stored() == 0
