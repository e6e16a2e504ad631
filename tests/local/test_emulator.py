"""The emulator starts, stays on loopback, ends with its owner, and leaves nothing behind."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from uuid import uuid4

import pytest

from tests.local.fake_processes import pretend_worker
from tests.local.sockets import free_port, listening
from tests.support.patience import PATIENCE_SECONDS
from tidemill.local import emulator, environment, instance, processes
from tidemill.local.emulator import EmulatorError
from tidemill.local.lifecycle import bare
from tidemill.local.paths import ROOT, STATE
from tidemill.local.signed_caller import Caller
from tidemill.local.wait import wait_until

pytestmark = pytest.mark.emulator


@pytest.fixture
def folder() -> Iterator[Path]:
    """The folder of an instance that no other run removes."""
    folder = STATE / f"test-{uuid4().hex[:6]}"
    yield folder
    emulator.stop(folder)
    shutil.rmtree(folder, ignore_errors=True)


def test_it_listens_on_loopback_only(folder: Path) -> None:
    with emulator.tied(folder) as running:
        assert listening(running.pid) == {("127.0.0.1", running.port)}


def test_nothing_is_left_when_the_block_ends(folder: Path) -> None:
    with emulator.tied(folder) as running:
        assert emulator.find(folder) == running
    assert not running.is_healthy()
    assert processes.emulators(folder) == []
    assert not (folder / "tmp").exists()


def test_it_ends_with_an_owner_that_is_killed() -> None:
    script = "from tidemill.local.lifecycle import bare\nwith bare() as root: print(root.endpoint, flush=True); input()"
    owner = subprocess.Popen(
        [sys.executable, "-c", script], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert owner.stdout
    port = int(owner.stdout.readline().rpartition(":")[2])
    running = emulator.Emulator(0, port)
    assert running.is_healthy()
    owner.kill()
    owner.communicate()
    wait_until(lambda: not running.is_healthy(), PATIENCE_SECONDS, "the emulator to follow its owner")


def test_the_next_owner_removes_what_a_killed_owner_left(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(instance, "STATE", tmp_path)
    left = tmp_path / "run-c0ffee"
    (left / "tmp").mkdir(parents=True)
    (left / "owner.lock").touch()
    with (
        pretend_worker(left / "tmp" / "ministack-lambda-work-01234567") as worker,
        instance.owned() as folder,
        instance.owned() as other,
    ):
        assert not left.exists()
        assert worker.wait(timeout=PATIENCE_SECONDS) == -signal.SIGKILL
        assert folder.exists()
        assert other.exists()
    assert list(tmp_path.iterdir()) == []


def test_the_logs_of_a_failed_run_are_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(instance, "STATE", tmp_path)
    with pytest.raises(RuntimeError), instance.owned() as folder:
        raise RuntimeError
    assert folder.exists()


def test_another_port_is_used_when_the_first_is_taken(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ports = iter((taken.getsockname()[1], free_port()))
        monkeypatch.setattr(emulator, "free_port", lambda: next(ports))
        with emulator.tied(folder) as running:
            assert running.port != taken.getsockname()[1]
            assert running.is_healthy()


def test_an_emulator_that_cannot_start_reports_the_reason(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    variables = environment.for_emulator(folder, free_port()) | {"GATEWAY_PORT": "no number"}
    monkeypatch.setattr(environment, "for_emulator", lambda *_: variables)
    with pytest.raises(EmulatorError, match="no number"), emulator.tied(folder):
        pass
    assert processes.emulators(folder) == []


def test_an_emulator_that_is_left_running_is_found_and_stopped(folder: Path) -> None:
    running = emulator.leave_running(folder)
    assert emulator.find(folder) == running
    emulator.stop(folder)
    assert emulator.find(folder) is None
    wait_until(lambda: not running.is_healthy(), PATIENCE_SECONDS, "the emulator to end")


def test_a_killed_emulator_is_not_found_and_can_be_started_again(folder: Path) -> None:
    killed = emulator.leave_running(folder)
    os.kill(killed.pid, signal.SIGKILL)
    wait_until(lambda: not processes.emulators(folder), PATIENCE_SECONDS, "the emulator to be gone")
    assert emulator.find(folder) is None
    with emulator.tied(folder) as running:
        assert running.is_healthy()


def test_the_process_id_of_another_program_is_left_alone(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "emulator.json").write_text(json.dumps({"pid": os.getpid(), "port": free_port()}))
    assert emulator.find(folder) is None
    emulator.stop(folder)


class Late(BaseHTTPRequestHandler):
    """The first request is not answered in time."""

    requests = 0

    def do_GET(self) -> None:
        Late.requests += 1
        self.send_response(HTTPStatus.SERVICE_UNAVAILABLE if Late.requests == 1 else HTTPStatus.OK)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def test_a_busy_emulator_is_found(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Else `make up` would end it, and its jobs would be lost."""
    monkeypatch.setattr(processes, "emulators", lambda _folder: [os.getpid()])
    folder.mkdir(parents=True)
    with HTTPServer(("127.0.0.1", 0), Late) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        (folder / "emulator.json").write_text(json.dumps({"pid": os.getpid(), "port": server.server_port}))
        found = emulator.find(folder)
        server.shutdown()

    assert found
    assert Late.requests == 2


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1}'])
def test_a_malformed_state_file_counts_as_no_emulator(folder: Path, text: str) -> None:
    folder.mkdir(parents=True)
    (folder / "emulator.json").write_text(text)
    assert emulator.find(folder) is None


def test_two_emulators_at_once_share_nothing() -> None:
    with bare() as one, bare() as other:
        one.client("sqs").create_queue(QueueName="here")
        assert other.client("sqs").list_queues()["QueueUrls"] == []


def test_the_metrics_that_aws_publishes_for_queues_exist(folder: Path) -> None:
    with emulator.tied(folder) as running:
        root = Caller(running.endpoint, environment.root_keys(folder.name))
        queue = root.client("sqs").create_queue(QueueName="here")["QueueUrl"]
        root.client("sqs").send_message(QueueUrl=queue, MessageBody="x")
        found = wait_until(
            lambda: root.client("cloudwatch").list_metrics(Namespace="AWS/SQS")["Metrics"],
            PATIENCE_SECONDS,
            "the metrics of the queue",
        )
        assert {"Name": "QueueName", "Value": "here"} in found[0]["Dimensions"]
        assert "ApproximateAgeOfOldestMessage" in {metric["MetricName"] for metric in found}
