"""A restore on the embedded AWS, as the page says: pause, restore, recover, deploy. Every job is accounted for."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from tests.e2e.conftest import Deployed
from tests.support.patience import PATIENCE_SECONDS
from tidemill.local import emulator, environment, instance
from tidemill.local.cdk_deploy import deploy
from tidemill.local.lifecycle import App
from tidemill.local.wait import wait_until
from tidemill.names import Lane, Output

RESTORED = "jobs-restored"
CONSOLE = Console(stderr=True)


class Watch:
    """Prints how long each step takes: the recovery time on the embedded AWS."""

    def __init__(self) -> None:
        self._since = time.monotonic()

    def lap(self, step: str) -> None:
        now = time.monotonic()
        CONSOLE.print(f"  {step}: {now - self._since:.1f} s", highlight=False)
        self._since = now


class Stage:
    """An app of its own, since the restore takes the jobs of all tests back."""

    def __init__(self, folder: Path, endpoint: str) -> None:
        self._folder = folder
        self._endpoint = endpoint
        self.deployed = self.deploy()

    def deploy(self, *context: str) -> Deployed:
        keys = environment.root_keys(self._folder.name)
        outputs = deploy(self._folder, self._endpoint, keys, CONSOLE, context=context)
        self.deployed = Deployed(App(self._folder, self._endpoint, outputs))
        return self.deployed

    def restore(self) -> None:
        dynamodb = self.deployed.app.client("dynamodb")
        dynamodb.restore_table_to_point_in_time(
            SourceTableName=self.deployed.app.outputs[Output.JOBS_TABLE],
            TargetTableName=RESTORED,
            UseLatestRestorableTime=True,
        )
        dynamodb.get_waiter("table_exists").wait(TableName=RESTORED)

    def accepted(self, type_: str, payload: dict[str, Any], **fields: Any) -> str:
        body = json.dumps({"type": type_, "payload": payload, **fields}).encode()
        answer = self.deployed.app.request("POST", "/jobs", body=body)
        assert answer.status == 202, answer
        return str(answer.json()["id"])


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with instance.owned() as folder, emulator.tied(folder) as running:
        yield Stage(folder, running.endpoint)


@pytest.mark.e2e
def test_every_job_is_accounted_for(stage: Stage, tmp_path: Path) -> None:
    former = stage.deployed
    ended = stage.accepted("demo.flaky", {"failures": 0})
    dead = stage.accepted("demo.broken", {"order": 1})
    former.until(ended, state="succeeded")
    former.until(dead, state="dead")
    retrying = stage.accepted("demo.busy", {"retry_after_seconds": 60}, lane=Lane.BULK)
    former.until(retrying, state="retrying")
    queued = stage.accepted("demo.flaky", {"failures": 0}, delay_seconds=90, lane=Lane.BULK)
    ahead = stage.accepted("demo.flaky", {"failures": 1}, delay_seconds=5)
    running = stage.accepted("demo.slow", {"seconds": 1.5})
    former.until(running, state="running")
    stage.restore()
    # At once: on a slow machine they may come due before the other lanes are paused.
    _pause(former, Lane.BULK)
    missing = stage.accepted("demo.flaky", {"failures": 0})
    for job_id in (missing, ahead, running):
        former.until(job_id, state="succeeded")

    watch = Watch()
    _pause(former, Lane.CRITICAL)
    _pause(former, Lane.DEFAULT)
    report = tmp_path / "report.jsonl"
    recovered = json.loads(former.app.tidemill("recover", RESTORED, "--yes", "--json", "--jobs", str(report)).stdout)
    watch.lap("pause and recover")
    settings = recovered["settings"]
    restored = stage.deploy(f"jobs_stream={settings['jobs_stream']}", f"epoch={settings['epoch']}")
    watch.lap("deploy")

    fates = {line["job_id"]: (line["fate"], line["may_run_again"]) for line in _lines(report)}
    assert fates[retrying] == ("dispatched", False)
    assert fates[queued] == ("dispatched", False)
    assert fates[ahead] == ("dispatched", True)
    assert fates[running] == ("given_back", True)
    assert fates[dead] == ("dead", False)
    assert fates[missing] == ("missing", False)
    assert ended not in fates
    for job_id in (ended, retrying, queued, ahead, running):
        restored.until(job_id, state="succeeded")
    watch.lap("until the last restored job has ended")
    assert restored.job(dead)["state"] == "dead"
    assert restored.app.request("GET", f"/jobs/{missing}").status == 404
    assert restored.app.outputs[Output.JOBS_TABLE] == RESTORED
    wait_until(lambda: restored.dead_letters_of(dead), PATIENCE_SECONDS, "the dead job's message")


def _pause(former: Deployed, lane: Lane) -> None:
    former.app.tidemill("pause", f"lane={lane}", "--reject-new", "--yes")


def _lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]
