"""`backfill`: each job that skipped work gets one job that makes up for it."""

import json
from dataclasses import replace

import pytest

from tests.integration.cli.conftest import Cloud, run
from tests.support.builders import SETTLEMENTS, SKIPPED, a_job, claimed, stored
from tidemill.application.backfill import backfill_id
from tidemill.domain.job import Job
from tidemill.domain.states import State
from tidemill.names import Lane
from tidemill.system import clock


def a_success(cloud: Cloud, *, skips: bool = True, payload: str = '{"n":1}', job_type: str = "test.job") -> Job:
    now = clock.now()
    job = cloud.store.insert_if_absent(a_job(created_at=now, due=now, payload=payload, type=job_type))
    running = claimed(cloud.store, job, now=now)
    settled = replace(SETTLEMENTS[State.SUCCEEDED], skipped=SKIPPED if skips else ())
    cloud.store.settle(running, settled, now=now)
    return stored(cloud.store, running)


@pytest.fixture
def marked(cloud: Cloud) -> Job:
    a_success(cloud, skips=False)
    a_success(cloud, job_type="test.other")
    return a_success(cloud)


def test_each_marked_job_is_backfilled_once(cloud: Cloud, marked: Job) -> None:
    arguments = ("backfill", "test.job", "--skipped", "geo", "--reason", "calm again", "--yes", "--json")

    first, second = run(*arguments), run(*arguments)

    assert (first.exit_code, second.exit_code) == (0, 0), first.stderr
    assert [json.loads(each.stdout)["written"] for each in (first, second)] == [1, 0]
    made = cloud.store.get(marked.tenant, backfill_id(marked, "geo"))
    assert made
    assert (made.type, made.lane, made.state, made.payload) == ("test.geo", Lane.BULK, State.QUEUED, '{"n":1}')
    assert (made.parent, made.hops) == (marked.id, 0)
    shown = json.loads(run("get", marked.id, "--tenant", marked.tenant, "--json").stdout)["skipped"]
    assert shown == [
        {"name": "geo", "type": "test.geo", "backfilled_by": made.id},
        {"name": "agent", "type": "test.agent", "backfilled_by": None},
    ]
    (entry,) = [json.loads(line) for line in run("audit", "--json").stdout.splitlines()]
    assert (entry["command"], entry["reason"], entry["options"]["skipped"]) == ("backfill", "calm again", "geo")


def test_explain_says_how_to_make_up_for_it(cloud: Cloud, marked: Job) -> None:
    command = "tidemill backfill test.job --skipped geo"
    assert f"It skipped geo; `{command}` makes up for that." in run("explain", marked.id).stdout

    run(*command.split()[1:], "--yes")

    assert f"and job {backfill_id(marked, 'geo')} makes up for that." in run("explain", marked.id).stdout


def test_a_dry_run_changes_nothing(cloud: Cloud, marked: Job) -> None:
    result = run("backfill", "test.job", "--skipped", "geo", "--dry-run")

    assert "1 job to backfill" in result.stdout
    assert stored(cloud.store, marked) == marked


def test_a_job_without_its_payload_does_not_stop_the_backfill_of_the_others(cloud: Cloud, marked: Job) -> None:
    damaged = a_success(cloud)
    cloud.table.put(replace(damaged, payload=None, payload_at="item/lost"))

    for written in (1, 0):
        result = run("backfill", "test.job", "--skipped", "geo", "--yes", "--json")

        assert result.exit_code == 1
        assert json.loads(result.stdout) == {"written": written, "skipped": 0, "left": [], "unreadable": 1}
        assert f"Skipped job {damaged.id}" in result.stderr
        assert "1 job could not be read" in result.stderr
    assert cloud.store.get(marked.tenant, backfill_id(marked, "geo"))


def test_a_job_that_is_deleted_with_its_payload_meanwhile_is_skipped(
    cloud: Cloud, marked: Job, environment: pytest.MonkeyPatch
) -> None:
    """As by its expiry, or by a purge, between the plan and its turn."""
    gone = a_success(cloud)
    apart = replace(gone, payload=None, payload_at="item/deleted")
    cloud.table.put(apart)

    def delete_it(*_: object, **__: object) -> bool:
        cloud.store.forget(apart)
        return True

    environment.setattr("tidemill.cli.bulk_change.confirmed", delete_it)

    result = run("backfill", "test.job", "--skipped", "geo", "--yes", "--json")

    assert json.loads(result.stdout) == {"written": 1, "skipped": 1, "left": []}
    assert result.exit_code == 0
