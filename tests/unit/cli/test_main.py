"""What the command line is as a whole: its help, its version, and what it may import."""

import subprocess
import sys
from importlib.metadata import version

import click
import pytest
from click.testing import CliRunner

from tidemill.cli.main import tidemill

#: Not in the environment of a person who only deploys and operates.
ABSENT = ("aws_lambda_powertools", "pydantic", "ministack", "moto", "pytest")

IMPORT_WITHOUT = """
import importlib, pkgutil, sys

class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {absent}:
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Blocked())
import cli
for module in pkgutil.iter_modules(cli.__path__, "cli."):
    importlib.import_module(module.name)
own = {{name.partition(".")[0] for name in sys.modules}} & {{"functions", "stacks", "local"}}
assert not own, own
"""


def test_every_module_imports_without_the_packages_of_the_functions_and_tests() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", IMPORT_WITHOUT.format(absent=ABSENT)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_help_documents_the_exit_codes_and_where_output_goes() -> None:
    text = CliRunner().invoke(tidemill, ["--help"]).output
    for code in ("0 ", "1 ", "2 ", "3 ", "4 ", "130 ", "141 "):
        assert f"\n    {code}" in text
    assert "stderr" in text
    assert "TIDEMILL_STACK" in text


def test_version_is_that_of_the_package() -> None:
    assert CliRunner().invoke(tidemill, ["--version"]).output == f"tidemill {version('tidemill')}\n"


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
def test_wrong_usage_exits_with_2_and_says_so_on_stderr(arguments: list[str]) -> None:
    result = CliRunner().invoke(tidemill, arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "Usage:" in result.stderr
