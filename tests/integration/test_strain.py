"""Strain that an operator has declared, as callers and handlers see it."""

import json
import time
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.support.deployed_functions import TENANT, Mill
from tests.support.http_events import call
from tidemill.application.attempt.run import Run
from tidemill.application.configuration import CACHED_FOR, Configurator
from tidemill.domain.admission.strain import LEVEL_SETTING
from tidemill.domain.states import State
from tidemill.dynamodb.operations.configuration_item import DynamoConfiguration
from tidemill.entrypoints import submit, work


@pytest.fixture(autouse=True)
def changes(mill: Mill) -> Configurator:
    mill.stop_clock()
    return Configurator(store=DynamoConfiguration(mill.table.client, table=mill.table.name), clock=mill.now)


def declare(mill: Mill, changes: Configurator, level: int) -> None:
    until = mill.now() + timedelta(seconds=25)
    changes.set(changes.read(), LEVEL_SETTING, level, by="arn:ops", reason="a test", until=until)
    mill.late += CACHED_FOR


def test_under_strain_the_api_refuses_sheddable_types_with_503_and_retry_after(
    mill: Mill, changes: Configurator, capsys: pytest.CaptureFixture[str]
) -> None:
    assert mill.post(job_type="test.extra").status == 202
    declare(mill, changes, 2)

    refused = mill.post(job_type="test.extra")

    assert (refused.status, refused.body["type"]) == (503, "urn:tidemill:problem:strained")
    assert refused.headers["Retry-After"] == "20"
    assert "under strain" in refused.body["detail"]
    assert "arn:ops" not in str(refused.body)
    assert mill.post().status == 202
    batch = '{"jobs": [{"type": "test.extra", "payload": {}}, {"type": "test.noop", "payload": {}}]}'
    answer = call(submit, "POST", "/jobs/batch", body=batch, headers={"content-type": "application/json"})
    assert [(each["status"], each.get("retry_after")) for each in answer.body["jobs"]] == [(503, 20), (202, None)]
    shed = [line for line in map(json.loads, capsys.readouterr().out.splitlines()) if "SubmissionsShed" in line]
    assert [(line["message"], line["strain"], line["retry_after_seconds"], line.get("item")) for line in shed] == [
        *(("submission shed", 2, 20, None), ("submission shed", 2, 20, "/jobs/0")),
    ]

    mill.late += timedelta(seconds=25)
    assert mill.post(job_type="test.extra").status == 202


def test_under_strain_the_api_accepts_deferrable_types_for_later(
    mill: Mill, changes: Configurator, capsys: pytest.CaptureFixture[str]
) -> None:
    assert mill.post(job_type="test.later").body["run_at"] is None
    declare(mill, changes, 1)

    deferred = mill.post(job_type="test.later", key="k")

    assert deferred.status == 202
    later = datetime.fromisoformat(deferred.body["run_at"])
    assert timedelta(minutes=5) <= later - mill.now() <= timedelta(minutes=15)
    assert mill.job(deferred.body["id"]).due == later
    (line,) = [line for line in map(json.loads, capsys.readouterr().out.splitlines()) if "SubmissionsDeferred" in line]
    assert (line["message"], line["job_id"], line["run_at"]) == (
        *("submission deferred", deferred.body["id"], later.isoformat()),
    )


def test_only_a_job_that_was_accepted_for_later_counts_as_deferred(
    mill: Mill, changes: Configurator, capsys: pytest.CaptureFixture[str]
) -> None:
    now = mill.post(job_type="test.later", key="now")
    changes.set(changes.read(), f"quotas.{TENANT}", {"count": 1, "period_seconds": 3600}, by="arn:ops", reason="a test")
    declare(mill, changes, 1)
    later = mill.post(job_type="test.later", key="later")
    capsys.readouterr()

    again = [mill.post(job_type="test.later", key=key) for key in ("now", "later")]
    assert [(each.status, each.body["run_at"]) for each in again] == [(200, None), (200, later.body["run_at"])]
    assert again[0].body["id"] == now.body["id"]
    assert mill.post(job_type="test.later").status == 429
    assert mill.post({"other": 1}, job_type="test.later", key="later").status == 422
    assert "SubmissionsDeferred" not in capsys.readouterr().out


@pytest.mark.parametrize(("strained_before", "counted"), [(False, 0), (True, 1)])
def test_the_same_submission_again_under_strain_is_not_counted_as_deferred(
    mill: Mill,
    changes: Configurator,
    capsys: pytest.CaptureFixture[str],
    *,
    strained_before: bool,
    counted: int,
) -> None:
    if strained_before:
        declare(mill, changes, 1)
    first = mill.post(job_type="test.later", key="k")
    if not strained_before:
        declare(mill, changes, 1)

    again = mill.post(job_type="test.later", key="k")

    assert (first.status, again.status, again.body["id"]) == (202, 200, first.body["id"])
    assert again.body["run_at"] == first.body["run_at"]
    assert capsys.readouterr().out.count("submission deferred") == counted


def test_strain_defers_no_job_of_a_group(mill: Mill, changes: Configurator) -> None:
    declare(mill, changes, 1)
    first = mill.post(job_type="test.later", group="g")
    second = mill.accepted(group="g")

    mill.run()

    assert first.body["run_at"] is None
    assert mill.job(second).state is State.SUCCEEDED


def test_under_strain_a_repeated_submission_still_gets_its_job(mill: Mill, changes: Configurator) -> None:
    first = mill.post(job_type="test.extra", key="k")
    declare(mill, changes, 2)

    again = mill.post(job_type="test.extra", key="k")

    assert (again.status, again.body["id"]) == (200, first.body["id"])
    assert mill.post({"other": 1}, job_type="test.extra", key="k").status == 422
    assert mill.post(job_type="test.extra", key="new").status == 503


def test_a_job_that_was_accepted_runs_and_reads_the_level(mill: Mill, changes: Configurator) -> None:
    levels: list[int] = []
    mill.script.handler = lambda _payload, run: levels.append(run.strained)
    job_id = mill.accepted(job_type="test.extra")
    declare(mill, changes, 2)

    mill.run()

    assert (mill.job(job_id).state, levels) == (State.SUCCEEDED, [2])


def test_under_strain_the_worker_of_a_slowed_lane_rests_after_its_batch(
    mill: Mill, changes: Configurator, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rests: list[float] = []
    monkeypatch.setattr(time, "sleep", rests.append)
    work.worker.cache_clear()

    def take_a_second(_payload: Any, _run: Run) -> None:
        mill.late += timedelta(seconds=1)

    mill.script.handler = take_a_second
    calm = mill.accepted()
    mill.run()
    declare(mill, changes, 3)
    strained = mill.accepted()
    mill.run()

    assert [mill.job(job_id).state for job_id in (calm, strained)] == [State.SUCCEEDED] * 2
    assert sum(rests) == 3
    (line,) = [line for line in map(json.loads, capsys.readouterr().out.splitlines()) if "RestedSeconds" in line]
    assert (line["message"], line["strain"], line["worked_seconds"], line["RestedSeconds"], line["lane"]) == (
        *("worker rested", 3, 1, 3, "default"),
    )
