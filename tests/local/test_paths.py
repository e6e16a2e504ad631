"""A command outside of the app's folder, or before the set-up, explains itself and leaves nothing."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE_SECONDS
from tidemill.local.paths import ROOT


def _run(folder: Path, command: str) -> tuple[int, str]:
    """Exit code and stderr."""
    done = subprocess.run(
        [sys.executable, "-m", "tidemill.local", command],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT / "shared"), "COLUMNS": "200"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("command", ["up", "down", "synth"])
def test_a_folder_without_app_is_refused(tmp_path: Path, command: str) -> None:
    said = f"tidemill: {tmp_path} has no cdk.json; run the command in the folder of the app\n"

    assert _run(tmp_path, command) == (1, said)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", ["up", "synth"])
def test_an_app_that_is_not_set_up_is_refused(tmp_path: Path, command: str) -> None:
    (tmp_path / "cdk.json").touch()
    said = "tidemill: .tidemill/emulator-venv/bin/python is missing; `make up` and the other targets install it\n"

    assert _run(tmp_path, command) == (1, said)
    assert list(tmp_path.iterdir()) == [tmp_path / "cdk.json"]
