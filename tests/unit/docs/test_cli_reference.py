"""docs/reference/cli.md is true: what it shows is what the commands say."""

import re
from pathlib import Path

from click.testing import CliRunner

from tidemill.cli.main import tidemill
from tools.cli_reference import renewed

REFERENCE = Path(__file__).parents[3] / "docs" / "reference" / "cli.md"
AGAIN = "the commands have changed: python -m tools.cli_reference docs/reference/cli.md"


def test_the_reference_is_what_the_commands_say() -> None:
    assert renewed(REFERENCE.read_text()) == REFERENCE.read_text(), AGAIN


def test_every_line_of_help_is_whole() -> None:
    assert not re.search(r"[a-z]\.\.\.$", REFERENCE.read_text(), re.MULTILINE)


def test_the_exit_codes_of_the_help_and_of_the_table_are_the_same() -> None:
    told = re.findall(r"^    (\d+) ", CliRunner().invoke(tidemill, ["--help"]).output, re.MULTILINE)
    assert told == re.findall(r"^\| (\d+) \|", REFERENCE.read_text(), re.MULTILINE)


def test_every_command_in_a_recipe_exists() -> None:
    (recipes,) = re.findall(r"## Recipes\n\n```\n(.+?)```", REFERENCE.read_text(), re.DOTALL)
    commands = re.findall(r"tidemill (\w+)", recipes)
    assert commands
    assert set(commands) <= set(tidemill.commands)
