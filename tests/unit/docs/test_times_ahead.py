"""No document shows a time ahead that is refused on the day of its reader."""

import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Final

import click
import pytest

from tests.support.document_blocks import DOCUMENTS, ROOT
from tests.support.document_commands import SUBSTITUTION
from tidemill.cli.main import tidemill
from tidemill.cli.parameter_types import TIMESTAMP
from tidemill.domain.time_constants import LONGEST_SPAN
from tidemill.system import clock

#: The date may be a text or the arguments of a `datetime`.
FIXED: Final = re.compile(r"\b(?:run[-_]at|deadline|--until)\b.*\b20\d\d(?:-|, )\d.*")
RECIPES: Final = (ROOT / "docs" / "reference" / "cli.md").read_text()
AHEAD: Final = {"run_at", "deadline", "until"}


def test_no_time_ahead_of_a_document_is_a_fixed_date() -> None:
    assert not [(page.name, found) for page in DOCUMENTS for found in FIXED.findall(page.read_text())]


def _options(command: click.Command) -> Iterator[click.Option]:
    yield from (each for each in command.params if isinstance(each, click.Option) and each.name in AHEAD)
    if isinstance(command, click.Group):
        for subcommand in command.commands.values():
            yield from _options(subcommand)


def test_the_help_of_an_option_for_a_time_ahead_has_no_fixed_date() -> None:
    options = list(_options(tidemill))

    assert {option.name for option in options} == AHEAD
    assert not [option.help for option in options if re.search(r"20\d\d-", option.help or "")]


@pytest.mark.skipif(sys.platform != "linux", reason="needs GNU date, as the recipes say")
@pytest.mark.parametrize("command", [each for each in SUBSTITUTION.findall(RECIPES) if each.startswith("date ")])
def test_the_time_of_a_recipe_is_accepted(command: str) -> None:
    printed = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True).stdout.strip()

    assert clock.now() < TIMESTAMP.convert(printed, None, None) <= clock.now() + LONGEST_SPAN
