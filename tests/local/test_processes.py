"""The processes of an instance are identified by their command lines."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.local.fake_processes import pretend_worker
from tests.support.patience import PATIENCE_SECONDS
from tidemill.local import processes


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that looks like a worker of the function `app-Work`."""
    with pretend_worker(tmp_path / "tmp" / "ministack-lambda-app-Work-0123abc_") as process:
        yield process


def test_a_worker_is_found_by_its_function(worker: subprocess.Popen[bytes], tmp_path: Path) -> None:
    folder = tmp_path / "tmp" / "ministack-lambda-app-Work-0123abc_"
    assert processes.workers(tmp_path, "app-Work") == {worker.pid: folder}
    assert processes.workers(tmp_path) == {worker.pid: folder}


def test_a_worker_is_found_without_proc_as_on_macos(
    worker: subprocess.Popen[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not Path("/bin/ps").exists():
        pytest.skip("no ps here")
    monkeypatch.setattr(processes, "PROC", tmp_path / "no-proc")
    assert list(processes.workers(tmp_path, "app-Work")) == [worker.pid]


@pytest.mark.usefixtures("worker")
def test_a_function_is_not_confused_with_one_whose_name_begins_the_same(tmp_path: Path) -> None:
    assert processes.workers(tmp_path, "app") == {}


@pytest.mark.usefixtures("worker")
def test_workers_of_another_instance_are_not_found(tmp_path: Path) -> None:
    assert processes.workers(tmp_path / "other") == {}


def test_a_program_that_only_reads_a_file_of_the_instance_is_left_alone(tmp_path: Path) -> None:
    log = tmp_path / "emulator.log"
    command = [sys.executable, "-c", "import sys; sys.stdin.read()", str(log)]
    with subprocess.Popen(command, stdin=subprocess.PIPE) as reader:
        processes.end(tmp_path)
        assert reader.poll() is None


def test_workers_are_ended_after_their_emulator_is_gone(worker: subprocess.Popen[bytes], tmp_path: Path) -> None:
    processes.end(tmp_path)
    assert worker.wait(timeout=PATIENCE_SECONDS) < 0


def test_the_watch_of_alarms_ends_with_the_instance(tmp_path: Path) -> None:
    arguments = ["-m", processes.WATCH, str(tmp_path), "--minute-seconds", "60"]
    command = [sys.executable, "-c", "import sys; print(flush=True); sys.stdin.read()", *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as watch:
        assert watch.stdout
        watch.stdout.readline()
        assert processes.watches(tmp_path) == [watch.pid]
        assert processes.watches(tmp_path / "other") == []
        processes.end(tmp_path)
        assert watch.wait(timeout=PATIENCE_SECONDS) < 0
