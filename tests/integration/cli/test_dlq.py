"""`dlq list` and `dlq show`, in a pipe and on a terminal."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import click
import pytest

from tests.integration.cli.conftest import Cloud, run
from tests.support.builders import NOW, SETTLEMENTS, TENANT, an_error, brought_to, claimed, reference_to
from tidemill.aws.attribute_values import number
from tidemill.aws.clients import Item
from tidemill.cli.formatting import DASH
from tidemill.domain.errors import StoreUnavailableError
from tidemill.domain.job import DeathReason, Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.names import TTL_ATTRIBUTE

IDS = ("01a1faf4-3139-7af6-9982-09538b03026f", "01a1faf4-352f-7b7a-81fb-5d167a478114")


def test_each_dead_job_is_a_line_with_its_reason_error_attempts_and_age(cloud: Cloud) -> None:
    cloud.dead_job(id=IDS[0], type="a.b")
    brought_to(cloud.store, State.RETRYING)
    result = run("dlq", "list")
    assert result.exit_code == 0
    title, line = result.stdout.splitlines()
    assert title.split() == ["ID", "TENANT", "TYPE", "REASON", "ERROR", "ATTEMPTS", "AGE"]
    assert re.split(" {2,}", line) == [IDS[0], TENANT, "a.b", "permanent error", "ValueError", "1", "0s"]
    assert "default: 1 dead job, 1 DLQ message.\n" in result.stderr


def test_an_undeliverable_job_shows_no_error_from_before_its_death(cloud: Cloud) -> None:
    job = replace(cloud.dead_job(dead_letter=False), death=DeathReason.UNDELIVERABLE)
    cloud.table.put(job, attention={"S": "dead#0"}, attention_at={"N": "1"})
    _, line = run("dlq", "list").stdout.splitlines()
    assert re.split(" {2,}", line)[3:5] == ["undeliverable", DASH]


def test_without_dead_jobs_stdout_is_empty(cloud: Cloud) -> None:
    result = run("dlq", "list")
    assert (result.exit_code, result.stdout) == (0, "")
    assert "No dead jobs." in result.stderr


def test_a_type_filters_the_jobs_but_not_the_counts_of_dlq_messages(cloud: Cloud) -> None:
    cloud.dead_job(id=IDS[0], type="a")
    cloud.dead_job(id=IDS[1], type="b")
    result = run("dlq", "list", "--type", "b")
    assert IDS[0] not in result.stdout
    assert IDS[1] in result.stdout
    assert "2 dead jobs, 2 DLQ messages" in result.stderr
    assert "No dead jobs of type c or d." in run("dlq", "list", "--type", "c", "--type", "d").stderr


def test_a_reason_of_death_filters_the_jobs(cloud: Cloud) -> None:
    cloud.dead_job(id=IDS[0])
    cloud.dead_job(id=IDS[1])
    _change(cloud, IDS[1], "death", {"S": "missing input"})
    result = run("dlq", "list", "--death", "missing input")
    assert IDS[0] not in result.stdout
    assert IDS[1] in result.stdout
    assert "No dead jobs that died for: gave up." in run("dlq", "list", "--death", "gave up").stderr


def test_counts_of_dlq_messages_that_differ_are_explained(cloud: Cloud) -> None:
    job = cloud.dead_job(dead_letter=False)
    assert "1 dead job, 0 DLQ messages. DLQ messages are kept for 14 days" in run("dlq", "list").stderr
    cloud.write(reference_to(job))
    cloud.write("malformed")
    assert "1 dead job, 2 DLQ messages. Some messages belong" in run("dlq", "list").stderr


def test_the_earliest_death_comes_first(cloud: Cloud) -> None:
    jobs = [cloud.dead_job() for _ in range(5)]
    for age, job in enumerate(reversed(jobs)):
        _change(cloud, job.id, "finished_at", number(1000 + age))
    listed = [json.loads(line)["id"] for line in run("dlq", "list", "--json").stdout.splitlines()]
    assert listed == [job.id for job in reversed(jobs)]


def test_each_line_of_json_is_printed_before_the_next_jobs_are_read(
    cloud: Cloud, environment: pytest.MonkeyPatch
) -> None:
    """There may be a million of them, and the table may refuse in the middle."""
    jobs = [cloud.dead_job() for _ in range(2)]

    def throttled(*_: object, **__: object) -> Iterator[Job]:
        yield from jobs
        raise StoreUnavailableError("throttled")

    environment.setattr("tidemill.application.control.redrive.Redriver.dead_jobs", throttled)
    result = run("dlq", "list", "--json")
    assert result.exit_code == 1
    assert [json.loads(line)["id"] for line in result.stdout.splitlines()] == [job.id for job in jobs]


def _change(cloud: Cloud, job_id: str, attribute: str, value: Item) -> None:
    cloud.table.client.update_item(
        TableName=cloud.table.name,
        Key={"pk": {"S": f"{TENANT}#{job_id}"}},
        UpdateExpression="SET #name = :value",
        ExpressionAttributeNames={"#name": attribute},
        ExpressionAttributeValues={":value": value},
    )


def test_an_expired_job_that_dynamodb_still_stores_is_hidden(cloud: Cloud) -> None:
    job = cloud.dead_job()
    past = datetime.now(UTC) - timedelta(seconds=1)
    _change(cloud, job.id, TTL_ATTRIBUTE, number(int(past.timestamp())))
    assert not run("dlq", "list").stdout
    assert run("dlq", "show", job.id).exit_code == 1
    assert run("dlq", "show", job.id, "--tenant", TENANT).exit_code == 1


def test_json_lines_have_all_fields(cloud: Cloud) -> None:
    cloud.dead_job(id=IDS[0], payload='{"order":7}')
    (line,) = run("dlq", "list", "--json").stdout.splitlines()
    job = json.loads(line)
    assert (job["id"], job["tenant"], job["state"], job["death"]) == (IDS[0], TENANT, "dead", "permanent error")
    assert job["payload"] == {"order": 7}
    assert job["errors"][0]["class"] == "ValueError"
    assert job["redrives"] == []


@pytest.mark.usefixtures("terminal")
def test_a_terminal_of_80_columns_does_not_truncate_ids_and_tenants(
    cloud: Cloud, environment: pytest.MonkeyPatch
) -> None:
    cloud.dead_job(id=IDS[0], type="a.rather.long.type.of.job.for.a.terminal")
    lines = click.unstyle(run("dlq", "list").stdout).splitlines()
    assert max(map(len, lines)) <= 80
    assert any(line.startswith(IDS[0]) for line in lines)
    assert any(line.startswith(TENANT) for line in lines)
    environment.setenv("COLUMNS", "40")
    narrow = run("dlq", "list").stdout
    assert IDS[0] in narrow
    assert "permanent error" in narrow


def test_show_prints_payload_errors_and_redrives(cloud: Cloud) -> None:
    job = cloud.dead_job(id=IDS[0], payload='{"order":7}', tags=("campaign:7", "signup"))
    redriven = cloud.store.redrive(job, token="token", now=NOW, by="alice\x1b[2J", reason="a \x1b")
    error = an_error(retryable=False, traceback="  in handler\x1b\nValueError: no such thing")
    died = replace(SETTLEMENTS[State.DEAD], error=error, cause="permanent error")
    cloud.store.settle(claimed(cloud.store, redriven), died, now=NOW)
    result = run("dlq", "show", IDS[0])
    assert result.exit_code == 0
    for text in (
        "dead: permanent error",
        TENANT,
        "  tags       campaign:7, signup",
        '    "order": 7',
        "attempt 1 (not retryable): ValueError: no such thing",
        "by alice\\x1b[2J, after death by: permanent error, because: a \\x1b",
        "    in handler\\x1b\n",
        "dead, permanent error, attempt 1",
        "queued, redriven",
        "running, claimed, attempt 1",
    ):
        assert text in result.stdout
    assert json.loads(run("dlq", "show", "--json", IDS[0]).stdout)["redrives"][0]["by"] == "alice\x1b[2J"


def test_show_names_the_place_of_a_payload_outside_the_document(cloud: Cloud) -> None:
    cloud.dead_job(id=IDS[0], payload=None, payload_at="item/abc")
    result = run("dlq", "show", IDS[0])
    assert result.exit_code == 0
    assert f"at item/abc; its owner can use `tidemill get {IDS[0]}`" in result.stdout
    report = json.loads(run("dlq", "show", "--json", IDS[0]).stdout)
    assert (report["payload"], report["payload_at"]) == (None, "item/abc")


def test_show_of_an_unknown_id_has_a_remedy(cloud: Cloud) -> None:
    result = run("dlq", "show", "nope")
    assert result.exit_code == 1
    assert "no dead job has the ID nope" in result.stderr
    assert "tidemill dlq list" in result.stderr


def test_show_requires_the_tenant_if_two_tenants_have_the_id(cloud: Cloud) -> None:
    cloud.dead_job(id=IDS[0])
    cloud.dead_job(id=IDS[0], tenant="another")
    result = run("dlq", "show", IDS[0])
    assert result.exit_code == 1
    assert f"{TENANT}, another" in result.stderr
    assert "another" in run("dlq", "show", IDS[0], "--tenant", "another").stdout


def test_show_of_a_job_that_is_not_dead_names_its_state(cloud: Cloud) -> None:
    job = brought_to(cloud.store, State.RETRYING)
    result = run("dlq", "show", job.id, "--tenant", TENANT)
    assert result.exit_code == 1
    assert "is retrying, not dead" in result.stderr
    assert "has no job nope" in run("dlq", "show", "nope", "--tenant", TENANT).stderr


def test_a_document_of_a_newer_version_is_skipped_and_explained(cloud: Cloud) -> None:
    newer, job = cloud.dead_job(), cloud.dead_job(id=IDS[0])
    _change(cloud, newer.id, "schema", number(99))
    result = run("dlq", "list")
    assert IDS[0] in result.stdout
    assert newer.id not in result.stdout
    assert f"Skipped job {newer.id} of tenant {job.tenant}." in result.stderr
    assert "a document of schema 99" in result.stderr
    assert "What to do: Use the command line" in result.stderr
