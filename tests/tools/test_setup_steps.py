"""Each step of the set-up runs once, again when its lock changes, and from the start after a kill."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tools import bootstrap, setup_steps
from tools.setup_steps import KilledError, SetupError, set_up


class Programs:
    """Stands in for venv, pip and npm: records the commands, and creates the files that a step checks."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self.ran: list[str] = []
        self.fail_on = ""
        self.error: BaseException = SetupError("no network")

    def run(self, program: Path, *arguments: Any) -> None:
        command = " ".join(map(str, (program, *arguments))).replace(f"{self._root}/", "")
        if self.fail_on and self.fail_on in command:
            raise self.error
        self.ran.append(command)
        if "venv" in arguments:
            python = Path(arguments[-1], "bin", "python")
            python.parent.mkdir(parents=True)
            python.symlink_to(sys.executable)
            Path(arguments[-1], "pyvenv.cfg").touch()
        if "ci" in arguments:
            (self._root / "node_modules" / "aws-cdk" / "bin").mkdir(parents=True)
            (self._root / "node_modules" / "aws-cdk" / "bin" / "cdk").touch()

    def did(self, text: str) -> bool:
        return any(text in command for command in self.ran)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A clone before its first set-up."""
    for name in (
        "requirements.txt",
        "requirements-dev.txt",
        "functions/requirements.txt",
        "shared/tidemill/local/requirements.txt",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "package-lock.json").touch()
    places = {
        "ROOT": tmp_path,
        "STATE": tmp_path / ".tidemill",
        "VENV": tmp_path / ".venv",
        "EMULATOR_VENV": tmp_path / ".tidemill" / "emulator-venv",
        "NODE_MODULES": tmp_path / "node_modules",
        "CDK": tmp_path / "node_modules" / "aws-cdk" / "bin" / "cdk",
        "LOG": tmp_path / "setup.log",
    }
    for name, place in places.items():
        monkeypatch.setattr(setup_steps, name, place)
    monkeypatch.setattr(setup_steps, "node_folder", lambda: tmp_path / "node")
    return tmp_path


@pytest.fixture
def programs(root: Path, monkeypatch: pytest.MonkeyPatch) -> Programs:
    programs = Programs(root)
    monkeypatch.setattr(setup_steps, "_run", programs.run)
    return programs


@pytest.mark.usefixtures("root")
def test_everything_is_set_up_once(programs: Programs) -> None:
    set_up("dev")
    assert programs.did("--require-hashes --requirement requirements.txt")
    assert programs.did("--require-hashes --requirement requirements-dev.txt")
    assert programs.did("emulator-venv/bin/python")
    assert programs.did("ci --ignore-scripts")
    programs.ran.clear()
    set_up("dev")
    set_up("app")
    assert programs.ran == []


@pytest.mark.usefixtures("root")
def test_the_app_is_set_up_without_the_packages_of_the_tests(programs: Programs) -> None:
    set_up("app")
    assert not programs.did("requirements-dev.txt")


def test_a_lock_that_changed_is_installed_again_and_nothing_else(root: Path, programs: Programs) -> None:
    set_up("dev")
    programs.ran.clear()
    (root / "shared" / "tidemill" / "local" / "requirements.txt").write_text("changed")
    set_up("dev")
    assert len(programs.ran) == 1
    assert programs.did("--requirement shared/tidemill/local/requirements.txt")


def test_the_emulator_follows_the_python_of_the_app(root: Path, programs: Programs) -> None:
    set_up("app")
    programs.ran.clear()
    (root / ".venv" / "pyvenv.cfg").write_text("version = 3.99")
    set_up("app")
    assert programs.did(".venv/bin/python -m venv --clear .tidemill/emulator-venv")
    assert not programs.did("--requirement requirements.txt")


@pytest.mark.usefixtures("root")
def test_a_failed_step_is_named_and_the_next_run_continues_with_it(programs: Programs) -> None:
    programs.fail_on = "functions/requirements.txt"
    with pytest.raises(SetupError, match="could not set up the packages of the functions: no network"):
        set_up("app")
    programs.fail_on = ""
    programs.ran.clear()
    set_up("app")
    assert not programs.did("--requirement requirements.txt")
    assert programs.did("--requirement functions/requirements.txt")


@pytest.mark.parametrize("error", [KeyboardInterrupt(), KilledError("pip was killed by signal 9")])
@pytest.mark.usefixtures("root")
def test_an_environment_whose_installation_was_killed_is_made_again(programs: Programs, error: BaseException) -> None:
    programs.fail_on, programs.error = "--requirement requirements.txt", error
    with pytest.raises((KeyboardInterrupt, SetupError)):
        set_up("app")
    programs.fail_on = ""
    programs.ran.clear()
    set_up("app")
    assert programs.did("venv --clear .venv")


def test_a_moved_clone_makes_its_environments_again(
    root: Path, programs: Programs, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_up("app")
    programs.ran.clear()
    stamp = root / ".venv" / ".tidemill" / "environment"
    stamp.write_text("of another place")
    set_up("app")
    assert programs.did("venv --clear .venv")


def test_an_environment_without_its_python_is_made_again(root: Path, programs: Programs) -> None:
    set_up("app")
    (root / ".venv" / "bin" / "python").unlink()
    shutil.rmtree(root / ".venv" / ".tidemill")
    programs.ran.clear()
    set_up("app")
    assert programs.did("venv --clear .venv")


def test_the_end_of_the_output_of_a_failed_program_is_shown(root: Path) -> None:
    script = "print('connection refused by the mirror'); raise SystemExit(4)"
    with pytest.raises(SetupError, match="connection refused by the mirror"):
        setup_steps._run(Path(sys.executable), "-c", script)


def test_a_killed_program_is_distinguished_from_a_failed_one(root: Path) -> None:
    with pytest.raises(KilledError, match="killed by signal 9"):
        setup_steps._run(Path(sys.executable), "-c", "import os; os.kill(os.getpid(), 9)")


def test_settings_that_would_install_elsewhere_do_not_reach_pip(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_TARGET", "/nowhere")
    monkeypatch.setenv("PIP_USER", "1")
    monkeypatch.setenv("PIP_TIMEOUT", "7")
    script = "import os; raise SystemExit([os.environ.get(f'PIP_{name}') for name in ('TARGET', 'USER', 'TIMEOUT')])"
    with pytest.raises(SetupError, match=r"\[None, '0', '7'\]"):
        setup_steps._run(Path(sys.executable), "-c", script)


def test_a_python_that_is_too_old_is_named_with_the_command_that_installs_a_newer_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bootstrap, "OLDEST_PYTHON", (99, 0))
    assert "sudo apt-get install python3 python3-venv" in bootstrap.missing()
    assert sys.version.split()[0] in bootstrap.missing()


def test_a_python_without_venv_is_named_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    lacking: Callable[[str], object] = lambda name: None if name == "ensurepip" else object()  # noqa: E731
    monkeypatch.setattr("importlib.util.find_spec", lacking)
    assert f"sudo apt-get install python3.{sys.version_info[1]}-venv" in bootstrap.missing()


def test_this_python_lacks_nothing() -> None:
    assert bootstrap.missing() == ""


def test_a_shim_that_starts_nothing_does_not_count_as_a_python(tmp_path: Path) -> None:
    shim = tmp_path / "python3.13"
    shim.write_text("#!/bin/sh\nexit 127\n")
    shim.chmod(0o755)
    assert not bootstrap.is_new_enough(str(shim))
    assert bootstrap.is_new_enough(sys.executable)


def test_an_old_python_without_a_newer_one_prints_the_message() -> None:
    script = "from tools import bootstrap; bootstrap.OLDEST_PYTHON = (99, 0); raise SystemExit(bootstrap.main())"
    command = [sys.executable, "-c", script]
    done = subprocess.run(
        command, cwd=bootstrap_root(), env={"PATH": "/nowhere"}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr.startswith("tidemill: this needs Python 3.11 or newer")


def bootstrap_root() -> Path:
    return Path(bootstrap.__file__).parent.parent
