"""Six incidents, understood with `status` and `explain` alone. The lines below are also in the guide to incidents."""

import re
from datetime import timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from stacks.composition import ROOT
from tests.integration.cli.called_functions import deploy
from tests.integration.cli.conftest import Cloud, run
from tests.support.builders import TENANT, a_job, claimed
from tidemill.aws import clients
from tidemill.system import clock

GUIDE = (ROOT / "docs" / "operations" / "incidents.md").read_text(encoding="utf-8")


class _Throttled:
    """A client of DynamoDB whose every call is throttled."""

    def __getattr__(self, name: str) -> Any:
        def call(*_: object, **__: object) -> None:
            error: Any = {"Error": {"Code": "ThrottlingException", "Message": "Rate exceeded"}}
            raise ClientError(error, name)

        return call


@pytest.fixture
def deployed(cloud: Cloud) -> Cloud:
    cloud.server.stacks[0] = deploy(cloud.server.stacks[0], cloud.resources)
    return cloud


def _accepted(cloud: Cloud, **changes: object) -> str:
    now = clock.now()
    return cloud.store.insert_if_absent(a_job(**{"created_at": now, "due": now, **changes})).id


def shows(output: str, line: str) -> None:
    """The output has this line, and so has the guide."""
    assert line in output
    assert line in GUIDE


def test_publisher_disabled(deployed: Cloud) -> None:
    deployed.resources.mappings["uuid-publish"]["State"] = "Disabled"
    job_id = _accepted(deployed)
    shown = run("status").stdout
    shows(shown, "STOPPED: the event source mapping of publish is disabled, so accepted, retried")
    shows(shown, "\n  tidemill repair\n")
    shows(run("explain", job_id).stdout, "queued: publish is not called")


def test_worker_killed(deployed: Cloud) -> None:
    now = clock.now()
    before = now - timedelta(minutes=6)
    job = a_job(created_at=before, due=before)
    deployed.store.insert_if_absent(job)
    claimed(deployed.store, job, now=now - timedelta(minutes=5))
    output = run("explain", job.id).stdout
    shows(output, "running: its worker is presumed dead")
    shows(output, "so its worker is presumed dead.")
    shows(output, "The message that started it returns to the lane when its visibility timeout ends.")


def test_flood_by_one_tenant(deployed: Cloud) -> None:
    for _ in range(5):
        _accepted(deployed, tenant="111122223333:AROAFLOOD", type="mail.send")
        clients.sqs().send_message(QueueUrl=deployed.queue, MessageBody="x")
    mine = _accepted(deployed)
    lines = run("status").stdout.splitlines()
    title = next(number for number, line in enumerate(lines) if line.startswith("WAITING TENANT"))
    assert re.split(" {2,}", lines[title + 1]) == ["111122223333:AROAFLOOD", "5"]
    assert "111122223333:AROAFLOOD" in GUIDE
    shows(run("explain", mine, "--tenant", TENANT).stdout, "queued: it waits for a worker of its lane")


def test_type_broken_by_a_deployment(deployed: Cloud) -> None:
    for _ in range(3):
        deployed.dead_job(type="mail.send")
    lines = run("dlq", "summary").stdout.splitlines()
    assert re.split(" {2,}", lines[1])[:3] == ["mail.send", "ValueError: no such thing", "3"]
    assert "mail.send  ValueError: no such thing" in GUIDE
    shows(run("status").stdout, "OF THE 3 NEWEST DEAD: TYPE")


def test_store_throttled(deployed: Cloud, monkeypatch: pytest.MonkeyPatch) -> None:
    clients.sqs().send_message(QueueUrl=deployed.queue, MessageBody="x")
    monkeypatch.setattr(clients, "dynamodb", _Throttled)
    result = run("status")
    assert result.exit_code == 1
    shows(result.stdout, "unknown number of dead jobs")
    assert "default  1 " in result.stdout
    shows(
        result.stderr,
        "some parts of the status could not be read: scheduled, dead, owed, parked, pauses, overrides, strain, "
        "governed, breakers, lowered_limits, sample",
    )


def test_message_deleted(deployed: Cloud) -> None:
    output = run("explain", _accepted(deployed)).stdout
    shows(output, "queued: its lane has no message")
    shows(output, "publish has not sent it yet, or it was lost.")
    shows(output, "`tidemill reconcile --overdue-by 1` does so after a minute.")
