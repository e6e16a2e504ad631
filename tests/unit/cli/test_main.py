"""The command line as a whole: its help, its version and its imports."""

import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from tests.support.patience import PATIENCE_SECONDS
from tidemill.cli.main import tidemill

#: Absent where an operator installs the command line: these belong to the Lambda functions, the emulator and the tests.
ABSENT = ("aws_lambda_powertools", "ministack", "moto", "pytest")
#: Code that runs in Lambda, builds stacks or runs the local stage. The command line works without it.
FOREIGN = (
    "aws_cdk",
    "demo",
    "functions",
    "shortener",
    "stacks",
    "tidemill.cdk",
    "tidemill.composition",
    "tidemill.entrypoints",
    "tidemill.http",
    "tidemill.local",
    "tidemill.powertools",
    "tidemill.worker",
)

#: A command that gets a signal while it writes the file of an export.
SIGNALLED = """
import os, pathlib, signal, sys
from tidemill.cli import main
from tidemill.cli.operations.export_target import FileTarget

signal.signal(signal.SIGHUP, signal.{before})

@main.tidemill.command()
def write():
    with FileTarget(pathlib.Path({path!r})).opened():
        os.kill(os.getpid(), signal.{name})

sys.argv = ["tidemill", "write"]
main.main()
"""

IMPORT_ALL = """
import importlib, pkgutil, sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {absent}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Blocked())
import tidemill.cli
names = [module.name for module in pkgutil.walk_packages(tidemill.cli.__path__, "tidemill.cli.")]
for name in names:
    importlib.import_module(name)
assert "tidemill.cli.main" in names, names
foreign = [name for name in sys.modules if any(f"{{name}}.".startswith(f"{{package}}.") for package in {foreign})]
assert not foreign, foreign
"""


def test_every_module_imports_without_powertools_the_emulator_the_tests_and_the_other_entry_points() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", IMPORT_ALL.format(absent=ABSENT, foreign=FOREIGN)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_help_documents_the_exit_codes_and_the_output_streams() -> None:
    text = CliRunner().invoke(tidemill, ["--help"]).output
    for code in ("0 ", "1 ", "2 ", "3 ", "4 ", "130 ", "141 "):
        assert f"\n    {code}" in text
    assert "stderr" in text
    assert "TIDEMILL_STACK" in text


def test_version_is_that_of_the_package() -> None:
    assert CliRunner().invoke(tidemill, ["--version"]).output == f"tidemill {version('tidemill')}\n"


def test_the_module_runs_as_a_program() -> None:
    program = [sys.executable, "-m", "tidemill.cli.main", "get"]
    done = subprocess.run(program, capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("Usage: tidemill get ")


def _commands(group: click.Group, *path: str) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for name, command in group.commands.items():
        found.append((*path, name))
        if isinstance(command, click.Group):
            found += _commands(command, *path, name)
    return found


@pytest.mark.parametrize("command", _commands(tidemill), ids=" ".join)
def test_every_command_has_help_that_fits_80_columns(command: tuple[str, ...]) -> None:
    result = CliRunner().invoke(tidemill, [*command, "--help"], terminal_width=80)
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert max(map(len, lines)) <= 80
    assert "..." not in result.output.replace("]...", "").replace("ID...", "").replace(" ARGS]", "")


@pytest.mark.parametrize("arguments", [["nope"], ["list", "--nope"], ["get"], ["dlq", "show"]])
def test_wrong_usage_exits_with_2_and_prints_the_usage_to_stderr(arguments: list[str]) -> None:
    result = CliRunner().invoke(tidemill, arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Usage:" in result.stderr


def _signalled(path: Path, *, name: str, before: str = "SIG_DFL") -> tuple[int, str]:
    """Exit code and stderr of a command that gets the signal `name`. `before` is what SIGHUP does otherwise."""
    script = SIGNALLED.format(path=str(path), name=name, before=before)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE_SECONDS, check=False
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_that_ends_a_command_leaves_no_temporary_file(tmp_path: Path, name: str) -> None:
    assert _signalled(tmp_path / "jobs.jsonl", name=name) == (130, "Interrupted.\n")
    assert list(tmp_path.iterdir()) == []


def test_a_command_under_nohup_goes_on_after_its_terminal_is_closed(tmp_path: Path) -> None:
    assert _signalled(tmp_path / "jobs.jsonl", name="SIGHUP", before="SIG_IGN") == (0, "")
    assert list(tmp_path.iterdir()) == [tmp_path / "jobs.jsonl"]
