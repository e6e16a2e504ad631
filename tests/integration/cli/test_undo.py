"""`undo`: the caller's own jobs over the API, and those of a tenant in the table."""

import json

from tests.integration.cli.conftest import Cloud, run
from tests.support.builders import AN_UNDO, NOW, SETTLEMENTS, a_job, claimed, stored
from tests.support.deployed_functions import Mill
from tidemill import Done, Submission
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.names import LISTING_KEY


def a_success(cloud: Cloud) -> Job:
    running = claimed(cloud.store, cloud.store.insert_if_absent(a_job(tenant="a:other", created_at=NOW)))
    cloud.store.settle(running, replace(SETTLEMENTS[State.SUCCEEDED], undo=AN_UNDO), now=NOW)
    return stored(cloud.store, running)


def test_a_job_is_undone_and_a_repeat_prints_the_same_job(behind: Mill) -> None:
    behind.script.handler = lambda _payload, _run: Done(undo=Submission(type="test.noop", payload={"n": 1}))
    job_id = behind.accepted()
    behind.run()

    first, second = run("undo", job_id), run("undo", job_id)

    assert (first.exit_code, first.stdout) == (0, second.stdout), first.stderr
    assert behind.job(first.stdout.split()[0]).correction.undoes == job_id


def test_a_refusal_says_why(behind: Mill) -> None:
    job_id = behind.accepted()
    result = run("undo", job_id)
    assert result.exit_code == 1
    assert "the job is queued; only a job that has succeeded can be undone" in result.stderr


def test_an_operator_undoes_the_job_of_a_tenant_and_leaves_an_audit_entry(cloud: Cloud) -> None:
    job = a_success(cloud)
    arguments = ("undo", job.id, "--tenant", "a:other", "--reason", "a typo", "--json")

    shown = json.loads(run(*arguments).stdout)

    assert (shown["undoes"], shown["tenant"], "payload" in shown) == (job.id, "a:other", True)
    undone = stored(cloud.store, job).correction.undone
    assert undone
    assert (undone.job_id, undone.reason) == (shown["id"], "a typo")
    run(*arguments)
    entries = [json.loads(line) for line in run("audit", "--json").stdout.splitlines()]
    assert [(entry["command"], entry["reason"], entry["counts"]) for entry in entries] == [
        ("undo", "a typo", {"written": 0}),
        ("undo", "a typo", {"written": 1}),
    ]
    assert entries[0]["options"] == {"ids": [job.id], "tenant": "a:other"}
    record = json.loads(run("get", job.id, "--tenant", "a:other", "--json").stdout)
    assert (record["undone_by"], record["undo_requested_by"], record["undo_reason"]) == (
        *(shown["id"], undone.by),
        "a typo",
    )


def test_explain_shows_the_undo_before_and_after(cloud: Cloud) -> None:
    job = a_success(cloud)
    explained = ("--tenant", "a:other")
    command = f"tidemill undo {job.id} --tenant a:other"
    assert f"`{command}` undoes it." in run("explain", job.id, *explained).stdout

    assert run(*command.split()[1:], "--reason", "a typo").exit_code == 0

    shown = run("explain", job.id, *explained).stdout
    undone = stored(cloud.store, job).correction.undone
    assert undone
    assert f"It was undone by job {undone.job_id}, submitted" in shown
    assert f"undone by job {undone.job_id}, as {undone.by} asked, because: a typo" in shown
    assert f"to undo job {job.id}" in run("explain", undone.job_id, *explained).stdout


def test_the_undo_of_an_operator_is_listed(cloud: Cloud) -> None:
    job = a_success(cloud)
    undoing = json.loads(run("undo", job.id, "--tenant", "a:other", "--json").stdout)["id"]

    found = cloud.table.client.get_item(TableName=cloud.table.name, Key={"pk": {"S": f"a:other#{undoing}"}})["Item"]

    assert LISTING_KEY in found


def test_wrong_usage_sends_nothing(cloud: Cloud) -> None:
    assert run("undo", "a", "--reason", "why").exit_code == 2
    missing = run("undo", "a", "--tenant", "a:other")
    assert (missing.exit_code, "tenant a:other has no job a" in missing.stderr) == (1, True)
    assert cloud.server.requests == []


def test_a_correction_is_submitted_with_what_it_supersedes(behind: Mill) -> None:
    wrong = behind.accepted(key="order-7")

    shown = json.loads(run("submit", "test.scripted", "--key", "order-7b", "--supersedes", "order-7").stdout)

    assert (shown["supersedes"], behind.job(wrong).correction.superseded_by) == (wrong, shown["id"])
    refused = run("submit", "test.scripted", "--supersedes", "order-8")
    assert (refused.exit_code, "no job with the key or id order-8" in refused.stderr) == (1, True)
