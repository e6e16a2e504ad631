"""Which Python CI takes besides the one that runs it."""

import sys
from pathlib import Path

import pytest

from tools import newest_python
from tools.newest_python import newest


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is the whole path."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "version_info", (3, 12, 1))
    monkeypatch.setattr(newest_python, "OTHER_PYTHONS", ("python3.14", "python3.13", "python3.12", "python3.11"))
    return tmp_path


def _program(path: Path, exit_code: int) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\nexit {exit_code}\n")
    path.chmod(0o755)
    return str(path)


def test_the_newest_that_starts_is_taken(machine: Path) -> None:
    _program(machine / "python3.14", 1)
    good = _program(machine / "python3.13", 0)

    assert newest() == good


def test_an_older_one_or_the_same_is_not(machine: Path) -> None:
    _program(machine / "python3.12", 0)
    _program(machine / "python3.11", 0)

    assert newest() == ""


def test_the_versions_of_pyenv_are_looked_at(machine: Path) -> None:
    (machine / "pyenv").write_text(f"#!/bin/sh\necho {machine}\n")
    (machine / "pyenv").chmod(0o755)
    good = _program(machine / "versions" / "3.13.0" / "bin" / "python3.13", 0)

    assert newest() == good
