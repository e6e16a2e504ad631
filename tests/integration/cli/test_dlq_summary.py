"""`dlq summary`: the dead jobs of all tenants by type and cause."""

import json
import re
from typing import Any

import click
import pytest

from tests.integration.cli.conftest import Cloud, run
from tests.support.builders import NOW, SECOND
from tidemill.domain.history import Transition, Why
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State


def _died(cloud: Cloud, message: str, **changes: Any) -> Job:
    """A dead job whose last error has this message."""
    job = cloud.dead_job(dead_letter=False, **changes)
    job = replace(job, errors=(replace(job.errors[-1], message=message),))
    cloud.table.put(job, attention={"S": "dead#0"}, attention_at={"N": "1"})
    return job


def test_errors_of_one_cause_are_one_group(cloud: Cloud) -> None:
    for number in range(3):
        _died(cloud, f"order {number} of 'a{number}' has no row", tenant=f"a:{number}")
    _died(cloud, "disk full")
    _died(cloud, "disk full", type="other.type")
    lines = run("dlq", "summary").stdout.splitlines()
    rows = [re.split(" {2,}", line) for line in lines[1:]]
    assert rows[0][:4] == ["test.job", "ValueError: order <n> of '…' has no row", "3", "3"]
    assert [row[:3] for row in rows[1:]] == [
        ["other.type", "ValueError: disk full", "1"],
        ["test.job", "ValueError: disk full", "1"],
    ]


def test_json_has_first_last_and_an_example(cloud: Cloud) -> None:
    first = _died(cloud, "disk full")
    last = cloud.dead_job(dead_letter=False)
    late = replace(last, errors=first.errors, finished_at=NOW + 60 * SECOND)
    cloud.table.put(late, attention={"S": "dead#0"}, attention_at={"N": "2"})
    (group,) = [json.loads(line) for line in run("dlq", "summary", "--json").stdout.splitlines()]
    assert group == {
        "type": "test.job",
        "error": "ValueError: disk full",
        "jobs": 2,
        "tenants": 1,
        "first": "2045-03-04T05:06:07.891Z",
        "last": "2045-03-04T05:07:07.891Z",
        "versions": {},
        "example": {"id": last.id, "tenant": last.tenant},
    }


def test_each_group_has_the_versions_of_the_last_runs(cloud: Cloud) -> None:
    """After a deployment the first version that fails is the one to roll back."""

    def died(error: str, *workers: str) -> None:
        runs = (Transition(at=NOW, state=State.RUNNING, cause=Why.CLAIMED, worker=worker) for worker in workers)
        job = _died(cloud, error)
        cloud.table.put(replace(job, history=tuple(runs)), attention={"S": "dead#0"}, attention_at={"N": "1"})

    died("disk full", "r1/old", "r2/new")
    died("disk full", "r3/new")
    died("disk full", "r4/old")
    died("no row", "r5/old")
    died("never ran")
    lines = run("dlq", "summary").stdout.splitlines()
    assert re.split(" {2,}", lines[0])[-3:] == ["VERSION", "EXAMPLE", "ITS TENANT"]
    rows = [re.split(" {2,}", line) for line in lines[1:]]
    assert [(row[1], row[6]) for row in rows] == [
        ("ValueError: disk full", "new +1"),
        ("ValueError: never ran", "–"),  # noqa: RUF001
        ("ValueError: no row", "old"),
    ]
    assert json.loads(run("dlq", "summary", "--json").stdout.splitlines()[0])["versions"] == {"new": 2, "old": 1}


@pytest.mark.usefixtures("terminal")
def test_a_terminal_of_80_columns_shows_ids_and_tenants(cloud: Cloud) -> None:
    job = _died(cloud, "disk full", id="01a1faf4-3139-7af6-9982-09538b03026f", tenant="111122223333:AROAOTHER")
    lines = click.unstyle(run("dlq", "summary").stdout).splitlines()
    assert max(map(len, lines)) <= 80
    assert any(line.rstrip().endswith(job.id) for line in lines)
    assert any(line.rstrip().endswith(job.tenant) for line in lines)


def test_a_type_and_a_limit_bound_what_is_read(cloud: Cloud) -> None:
    for _ in range(3):
        _died(cloud, "disk full")
    _died(cloud, "disk full", type="other.type")
    result = run("dlq", "summary", "--limit", "2")
    assert re.split(" {2,}", result.stdout.splitlines()[1])[2] == "2"
    assert "Only the first 2 dead jobs were read" in result.stderr
    assert "other.type" not in run("dlq", "summary", "--type", "test.job").stdout
    assert "No dead jobs." in run("dlq", "summary", "--type", "nothing").stderr
