"""Whether an app that `make up` left running has stopped without `make down`."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from tidemill.local import emulator, instance, lifecycle


@pytest.mark.parametrize(
    ("was_up", "runs", "stopped"), [(True, False, True), (True, True, False), (False, False, False)]
)
def test_only_an_app_that_was_up_and_no_longer_runs_has_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, was_up: bool, runs: bool, stopped: bool
) -> None:
    monkeypatch.setattr(instance, "UP", tmp_path)
    monkeypatch.setattr(emulator, "find", lambda _: SimpleNamespace(endpoint="http://127.0.0.1:1") if runs else None)
    if was_up:
        (tmp_path / "outputs.json").write_text("{}")

    assert lifecycle.has_stopped() is stopped
