"""The audit log: each command of an operator that changes jobs leaves one entry."""

import json
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from tests.integration.cli.conftest import Cloud, run
from tests.support.builders import a_job, brought_to
from tidemill.application.operations.audit import AuditEntry, Outcome
from tidemill.aws import clients
from tidemill.domain.errors import StoreUnavailableError
from tidemill.domain.states import State
from tidemill.dynamodb.job_store import DynamoJobStore
from tidemill.dynamodb.operations.audit_items import DynamoAuditLog
from tidemill.names import AUDIT_RETENTION_DAYS, RECONCILE_READ_UNITS
from tidemill.system import clock

_ARN: Final = "arn:aws:sts::123456789012:user/moto"


def _entries() -> list[dict[str, Any]]:
    return [json.loads(line) for line in run("audit", "--json").stdout.splitlines()]


def test_an_entry_has_the_verified_operator_the_options_the_times_and_the_counts(cloud: Cloud) -> None:
    for _ in range(3):
        cloud.dead_job(type="mail")
    run("redrive", "--type", "mail", "--limit", "2", "--no-probe", "--reason", "fixed in 1.2", "--yes")

    (entry,) = _entries()
    assert (entry["command"], entry["by"], entry["reason"]) == ("redrive", _ARN, "fixed in 1.2")
    assert entry["options"] == {"types": ["mail"], "limit": 2, "no_probe": True}
    assert (entry["outcome"], entry["counts"]) == ("done", {"written": 2, "skipped": 0, "left": 0})
    assert entry["began_at"] <= entry["ended_at"]


def test_each_command_that_changes_jobs_leaves_one_entry_the_newest_first(cloud: Cloud) -> None:
    cloud.dead_job()
    queued = brought_to(cloud.store, State.QUEUED)
    brought_to(cloud.store, State.QUEUED, type="other")
    run("redrive", "--all", "--yes")
    run("dlq", "sweep", "--yes")
    run("cancel", queued.id, "--tenant", queued.tenant, "--yes")
    run("cancel", "--type", "other", "--yes", "--reason", "wrong input")
    run("purge", "--older-than", "0s", "--yes")
    run("reconcile", "--reason", "the stream was off")
    run("redrive", "--all", "--dry-run")
    run("cancel", "--all", "--dry-run")
    run("reconcile", "--dry-run")

    first, *others = _entries()
    assert [entry["command"] for entry in others] == ["purge", "cancel", "cancel", "dlq sweep", "redrive"]
    assert (first["command"], first["reason"], first["outcome"]) == ("reconcile", "the stream was off", "done")
    assert first["options"] == {"overdue_by_minutes": 60, "read_units": RECONCILE_READ_UNITS}
    assert first["counts"]["nudged"] == 0
    assert "wrong input" in run("audit", "--limit", "3").stdout


def test_every_entry_of_a_time_is_listed(cloud: Cloud) -> None:
    log = DynamoAuditLog(clients.dynamodb(), table=cloud.table.name, retention=timedelta(days=365))
    now = clock.now()
    for number in range(130):
        began = now - timedelta(minutes=number)
        log.begin(AuditEntry(id=str(number), command="redrive", began_at=began, by=_ARN, reason="", options={}))

    def ids(*options: str) -> list[int]:
        return [int(json.loads(line)["id"]) for line in run("audit", "--json", *options).stdout.splitlines()]

    assert ids("--since", "1d") == list(range(130))
    assert ids("--limit", "120") == list(range(120))
    assert ids() == list(range(20))
    assert ids("--since", "1d", "--limit", "3") == [0, 1, 2]
    assert ids("--since", "1d", "--before", (now - timedelta(minutes=120)).isoformat()) == list(range(121, 130))


@pytest.mark.usefixtures("cloud")
def test_an_entry_with_many_ids_has_the_first_ones_and_their_number() -> None:
    ids = [f"01a2055d-244e-7588-95c8-{number:012}" for number in range(101)]

    run("cancel", *ids, "--tenant", "a:one", "--reason", "a test", "--yes")

    (entry,) = _entries()
    assert (entry["options"]["ids"], entry["options"]["number_of_ids"]) == (ids[:100], len(ids))


@pytest.mark.usefixtures("interactive")
def test_a_declined_command_leaves_no_entry(cloud: Cloud) -> None:
    job = brought_to(cloud.store, State.QUEUED)
    run("cancel", job.id, "--tenant", job.tenant, typed="n\n")
    run("cancel", "--all", typed="n\n")
    cloud.dead_job()
    run("redrive", "--all", typed="n\n")

    assert "No entries." in run("audit").stderr


def test_an_interruption_and_a_failure_are_recorded_with_the_counts_so_far(
    cloud: Cloud, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud.dead_job()
    for error, outcome in [(KeyboardInterrupt(), "interrupted"), (StoreUnavailableError("throttled"), "failed")]:

        def broken(*_: object, error: BaseException = error, **__: object) -> None:
            raise error

        with monkeypatch.context() as patch:
            patch.setattr(DynamoJobStore, "redrive", broken)
            run("redrive", "--all", "--yes")
        assert (_entries()[0]["outcome"], _entries()[0]["counts"]["written"]) == (outcome, 0)


def test_a_command_that_cannot_be_recorded_changes_nothing(cloud: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise StoreUnavailableError("no answer")

    monkeypatch.setattr(DynamoAuditLog, "begin", broken)
    job = cloud.dead_job()

    assert run("redrive", "--all", "--yes").exit_code == 1
    assert cloud.state(job) is State.DEAD


def test_a_command_that_was_killed_has_an_entry_without_an_end_and_entries_expire(cloud: Cloud) -> None:
    log = DynamoAuditLog(clients.dynamodb(), table=cloud.table.name, retention=timedelta(days=AUDIT_RETENTION_DAYS))
    began = datetime(2046, 1, 31, tzinfo=UTC)
    entry = AuditEntry(id="1", command="redrive", began_at=began, by=_ARN, reason="", options={})

    log.begin(entry)
    log.begin(entry)

    assert [(found["outcome"], found["ended_at"]) for found in _entries()] == [(None, None)]
    (item,) = cloud.table.client.scan(TableName=cloud.table.name)["Items"]
    assert int(item["expires_at"]["N"]) == int((began + timedelta(days=365)).timestamp())


def test_the_end_of_an_expired_entry_and_a_late_copy_of_its_begin_change_nothing(cloud: Cloud) -> None:
    log = DynamoAuditLog(clients.dynamodb(), table=cloud.table.name, retention=timedelta(days=1))
    entry = AuditEntry(id="1", command="redrive", began_at=clock.now(), by=_ARN, reason="", options={})

    log.end(entry, at=entry.began_at, outcome=Outcome.DONE, counts={})
    assert list(log.entries()) == []

    log.begin(entry)
    log.end(entry, at=entry.began_at, outcome=Outcome.DONE, counts={})
    log.begin(entry)
    assert [found.outcome for found in log.entries()] == [Outcome.DONE]


def test_a_filter_cancels_the_live_jobs_that_match(cloud: Cloud) -> None:
    jobs = {
        "queued": brought_to(cloud.store, State.QUEUED, type="mail"),
        "running": brought_to(cloud.store, State.RUNNING, type="mail"),
        "dead": brought_to(cloud.store, State.DEAD, type="mail"),
        "other": brought_to(cloud.store, State.QUEUED, type="other"),
        "tenant": cloud.store.insert_if_absent(a_job(type="mail", tenant="a:two")),
    }

    result = run("cancel", "--type", "mail", "--tenant", jobs["queued"].tenant, "--yes", "--reason", "wrong input")

    assert (result.exit_code, result.stdout) == (0, "Cancelled 2 of 2 jobs.\n")
    states = {name: cloud.state(job) for name, job in jobs.items()}
    assert states == {
        "queued": State.CANCELLED,
        "running": State.RUNNING,
        "dead": State.DEAD,
        "other": State.QUEUED,
        "tenant": State.QUEUED,
    }
    running = cloud.store.get(jobs["running"].tenant, jobs["running"].id)
    assert running
    assert running.cancel.requested_at
    assert running.cancel.request
    assert (running.cancel.request.by, running.cancel.request.reason) == (_ARN, "wrong input")


@pytest.mark.parametrize("arguments", [[], ["--yes"], ["--all", "--type", "a", "--yes"], ["--type", "a"]])
def test_a_bulk_cancel_needs_a_clear_selection_and_a_confirmation(cloud: Cloud, arguments: list[str]) -> None:
    job = brought_to(cloud.store, State.QUEUED, type="a")

    assert run("cancel", *arguments).exit_code == 2
    assert cloud.state(job) is State.QUEUED
