"""Operators read, list and cancel the jobs of any tenant with their AWS credentials."""

import json
from typing import Any

import click
import pytest

from tests.integration.cli.conftest import Cloud, run
from tests.support.builders import NOW, SECOND, a_job, brought_to, stored
from tidemill.aws import clients
from tidemill.domain.job import Job
from tidemill.domain.job_parts import CancelRequest
from tidemill.domain.states import State
from tidemill.dynamodb.document import key
from tidemill.names import LISTING_INDEX


def _insert(cloud: Cloud, **changes: Any) -> Job:
    return cloud.store.insert_if_absent(a_job(**changes))


def _ids(*arguments: str) -> set[str]:
    result = run("list", "--json", *arguments)
    assert result.exit_code == 0, result.stderr
    return {json.loads(line)["id"] for line in result.stdout.splitlines()}


@pytest.fixture
def scanned(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> Cloud:
    """Pages of two items."""
    monkeypatch.setattr("tidemill.dynamodb.passes.job_scan._ITEMS", 2)
    return cloud


def test_get_reads_the_job_of_a_tenant(cloud: Cloud) -> None:
    job = _insert(cloud, tenant="a:other", payload='{"order":7}')
    found = json.loads(run("get", job.id, "--tenant", "a:other").stdout)
    assert (found["tenant"], found["payload"], found["generation"]) == ("a:other", {"order": 7}, 1)
    assert cloud.server.requests == []
    result = run("get", job.id, "--tenant", "a:third")
    assert result.exit_code == 1
    assert f"tenant a:third has no job {job.id}" in result.stderr


def test_cancel_ends_jobs_of_a_tenant_and_reports_the_others(cloud: Cloud) -> None:
    job, done = _insert(cloud, tenant="a:other"), brought_to(cloud.store, State.SUCCEEDED, tenant="a:other")
    result = run("cancel", job.id, done.id, "nope", "--tenant", "a:other", "--yes", "--reason", "a typo")
    assert result.exit_code == 1
    assert result.stdout == f"{job.id}  cancelled\n"
    asked = stored(cloud.store, job).cancel.request
    assert asked == CancelRequest(by="arn:aws:sts::123456789012:user/moto", reason="a typo")
    assert run("cancel", job.id, "--yes", "--reason", "a typo").exit_code == 2
    assert "tenant a:other has no job nope" in result.stderr
    assert "2 of 3 jobs could not be cancelled" in result.stderr
    assert cloud.state(job) is State.CANCELLED
    assert cloud.state(done) is State.SUCCEEDED


def test_cancel_of_one_missing_job_is_refused(cloud: Cloud) -> None:
    result = run("cancel", "nope", "--tenant", "a:other", "--yes")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "tenant a:other has no job nope" in result.stderr


def test_all_tenants_are_listed_by_a_scan_with_the_amount_read(scanned: Cloud) -> None:
    jobs = [_insert(scanned, tenant=f"a:{number}") for number in range(5)]
    result = run("list", "--all-tenants", "--all")
    assert result.exit_code == 0, result.stderr
    for job in jobs:
        assert job.id in result.stdout
        assert job.tenant in result.stdout
    assert "Read 5 items for " in result.stderr
    assert "and found 5 jobs." in result.stderr
    assert "--cursor" not in result.stderr


def test_a_scan_that_stops_says_how_to_go_on_and_misses_nothing(scanned: Cloud) -> None:
    jobs = {_insert(scanned, tenant=f"a:{number}").id for number in range(7)}
    found: list[str] = []
    arguments: list[str] = []
    for _ in range(len(jobs)):
        result = run("list", "--all-tenants", "--json", "--limit", "3", *arguments)
        found += [json.loads(line)["id"] for line in result.stdout.splitlines()]
        if "--cursor" not in result.stderr:
            break
        arguments = ["--cursor", result.stderr.split("--cursor ")[1].strip()]
    assert sorted(found) == sorted(jobs)


def test_a_scan_stops_at_its_read_units(scanned: Cloud) -> None:
    for number in range(6):
        _insert(scanned, tenant=f"a:{number}")
    result = run("list", "--all-tenants", "--all", "--json", "--most-read-units", "1")
    assert len(result.stdout.splitlines()) < 6
    assert "Continue with --cursor " in result.stderr


def test_after_an_interruption_a_scan_says_how_to_go_on(scanned: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(6):
        _insert(scanned, tenant=f"a:{number}")

    def interrupt(*_: object, **__: object) -> bool:
        raise KeyboardInterrupt

    monkeypatch.setattr("tidemill.application.passes.pace.Pace.spend", interrupt)
    result = run("list", "--all-tenants", "--all")
    assert result.exit_code == 130
    assert "Continue with --cursor " in result.stderr


@pytest.mark.parametrize("everyone", [True, False])
def test_the_filters_select_by_state_type_time_and_error(scanned: Cloud, *, everyone: bool) -> None:
    whose = ["--all-tenants"] if everyone else ["--tenant", "a:one"]
    scanned = scanned.listed()
    one = _insert(scanned, tenant="a:one", type="mail.send")
    later = _insert(scanned, tenant="a:one", type="mail.fetch", created_at=NOW + 5 * SECOND)
    failed = brought_to(scanned.store, State.RETRYING, tenant="a:one", tags=("campaign:7", "signup"))
    other = _insert(scanned, tenant="a:two", type="mail.send")
    others = {other.id} if everyone else set()
    assert _ids(*whose, "--type", "mail.send") == {one.id} | others
    assert _ids(*whose, "--state", "retrying") == {failed.id}
    assert _ids(*whose, "--since", (NOW + SECOND).isoformat()) == {later.id}
    assert _ids(*whose, "--until", (NOW + SECOND).isoformat()) == {one.id, failed.id} | others
    assert _ids(*whose, "--error", failed.errors[-1].error_class) == {failed.id}
    assert _ids(*whose, "--error", "Nothing") == set()
    assert _ids(*whose, "--tag", "signup") == {failed.id}
    assert _ids(*whose, "--tag", "sign") == set()


def test_dead_and_scheduled_jobs_come_from_the_index(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    dead, scheduled = cloud.dead_job(tenant="a:one"), brought_to(cloud.store, State.SCHEDULED, tenant="a:two")
    _insert(cloud)
    calls: list[str] = []
    clients.dynamodb().meta.events.register("before-call.dynamodb", lambda model, **_: calls.append(model.name))
    assert _ids("--all-tenants", "--state", "dead") == {dead.id}
    assert _ids("--all-tenants", "--state", "scheduled") == {scheduled.id}
    assert _ids("--tenant", "a:two", "--state", "dead") == set()
    assert "Scan" not in calls


def test_the_jobs_of_a_tenant_come_from_the_listing_newest_first(cloud: Cloud) -> None:
    cloud = cloud.listed()
    _insert(cloud, tenant="a:two")
    jobs = [_insert(cloud, tenant="a:one", created_at=NOW + number * SECOND) for number in range(3)]
    result = run("list", "--tenant", "a:one", "--json", "--limit", "2")
    assert [json.loads(line)["id"] for line in result.stdout.splitlines()] == [jobs[2].id, jobs[1].id]
    assert "Read " not in result.stderr


def test_without_a_listing_the_jobs_of_a_tenant_come_from_a_scan(cloud: Cloud) -> None:
    clients.dynamodb().update_table(
        TableName=cloud.table.name, GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": LISTING_INDEX}}]
    )
    job = _insert(cloud, tenant="a:one")
    _insert(cloud, tenant="a:two")
    result = run("list", "--tenant", "a:one", "--json")
    assert [json.loads(line)["id"] for line in result.stdout.splitlines()] == [job.id]
    assert "Read 2 items" in result.stderr


@pytest.mark.parametrize("whose", [["--tenant", "a:one"], ["--all-tenants"]])
def test_a_job_that_cannot_be_read_is_reported_and_the_others_are_listed(cloud: Cloud, whose: list[str]) -> None:
    cloud = cloud.listed()
    job, broken = (_insert(cloud, tenant="a:one") for _ in range(2))
    cloud.table.client.update_item(
        TableName=cloud.table.name,
        Key=key(broken.tenant, broken.id),
        UpdateExpression="REMOVE lane",
    )
    result = run("list", "--json", *whose)
    assert [json.loads(line)["id"] for line in result.stdout.splitlines()] == [job.id]
    (skipped,) = [line for line in result.stderr.splitlines() if line.startswith("Skipped")]
    assert broken.id in skipped
    for command in (["get", broken.id], ["explain", broken.id]):
        shown = run(*command, "--tenant", "a:one")
        assert (shown.exit_code, shown.stdout) == (1, "")
        assert "see `unreadable jobs` in the runbook" in shown.stderr


def test_usage_errors_of_list(cloud: Cloud) -> None:
    assert run("list", "--error", "X").exit_code == 2
    assert run("list", "--tenant", "a", "--all-tenants").exit_code == 2
    assert run("list", "--all-tenants", "--cursor", "?").exit_code == 2


@pytest.mark.usefixtures("terminal")
def test_a_cursor_stays_on_one_line_of_a_terminal(scanned: Cloud) -> None:
    for number in range(4):
        _insert(scanned, tenant=f"https://issuer.example/{'x' * 60}#{number}")
    result = run("list", "--all-tenants", "--limit", "1")
    (line,) = (line for line in result.stderr.splitlines() if "--cursor " in line)
    assert len(line.partition("--cursor ")[2]) > 100


@pytest.mark.usefixtures("terminal")
def test_a_terminal_of_80_columns_shows_ids_and_tenants(scanned: Cloud) -> None:
    tags = ("campaign:7", "signup")
    job = _insert(scanned, id="01a1faf4-3139-7af6-9982-09538b03026f", tenant="111122223333:AROAOTHER", tags=tags)
    lines = click.unstyle(run("list", "--all-tenants").stdout).splitlines()
    assert max(map(len, lines)) <= 80
    assert any(line.startswith(job.id) for line in lines)
    assert any(line.startswith(job.tenant) for line in lines)
    assert any(line.startswith("campaign:7, signup") for line in lines)
