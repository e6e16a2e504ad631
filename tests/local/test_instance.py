"""One process at a time changes the instance of `make up`."""

import fcntl
import io
import threading
from pathlib import Path

import pytest
from rich.console import Console

from tests.support.patience import PATIENCE_SECONDS
from tidemill.local import instance
from tidemill.local.wait import wait_until


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(instance, "STATE", tmp_path)
    return tmp_path


def test_a_command_that_waits_for_another_one_says_so(state: Path) -> None:
    said, entered = io.StringIO(), threading.Event()

    def change() -> None:
        with instance.up(Console(file=said)):
            entered.set()

    other = threading.Thread(target=change)
    with (state / "up.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        other.start()
        wait_until(lambda: "another `make up` or `make down` is at work" in said.getvalue(), PATIENCE_SECONDS, "a word")
        assert not entered.is_set()
    other.join(PATIENCE_SECONDS)
    assert entered.is_set()


def test_a_command_that_is_alone_says_nothing() -> None:
    said = io.StringIO()

    with instance.up(Console(file=said)) as folder:
        assert folder == instance.UP
    assert said.getvalue() == ""
