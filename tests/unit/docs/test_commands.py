"""Each command of the README and the documents is one that the command line and the Makefile accept."""

import re
from contextlib import suppress
from datetime import timedelta
from itertools import takewhile
from pathlib import Path
from typing import Final

import click
import pytest

from tests.support.document_blocks import DOCUMENTS, ROOT
from tests.support.document_commands import TIME_AHEAD, Command, all_commands, commands_of
from tidemill.cli.main import tidemill
from tidemill.system import clock

#: A word of a command that stands for any one or more of the user's own.
ANYTHING: Final = frozenset({"…", "COMMAND"})


def _parse(command: click.Command, words: list[str], parent: click.Context | None = None) -> None:
    """Parse as the command line does before it acts. Raises `click.UsageError`."""
    with command.make_context(command.name, list(words), parent=parent) as context:
        if isinstance(command, click.Group):
            _, found, rest = command.resolve_command(context, [*context._protected_args, *context.args])
            assert found is not None
            _parse(found, rest, context)


def test_each_line_of_a_block_that_begins_with_a_command_is_checked() -> None:
    """Finds the lines in another way: each line with a fence begins a block or ends one."""
    lines = set()
    for path in DOCUMENTS:
        within = False
        for number, line in enumerate(path.read_text().splitlines(), 1):
            within ^= line.lstrip().startswith("```")
            if within and re.match(r"\s*(\$ )?(tidemill|make) (?!=)", line):
                lines.add((path.relative_to(ROOT).as_posix(), number))

    checked = {(command.page, command.line) for command in all_commands() if command.words[0] in {"tidemill", "make"}}
    assert lines
    assert lines <= checked


@pytest.mark.parametrize("command", commands_of("tidemill"), ids=str)
def test_the_command_line_accepts_it(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs.jsonl").touch()
    tomorrow = f"{clock.now() + timedelta(days=1):%FT%TZ}"
    words = [word.replace(TIME_AHEAD, tomorrow) for word in command.words[1:]]
    given = list(takewhile(lambda word: word not in ANYTHING, words))
    if given != words or given[1:] == []:
        # The text names the command, or leaves out what it takes.
        given += ["--help"]
    # `--help` ends the parsing. Wrong usage raises another error.
    with suppress(click.exceptions.Exit):
        _parse(tidemill, given)


@pytest.mark.parametrize("command", commands_of("make"), ids=str)
def test_the_makefile_has_it(command: Command) -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    variables = set(re.findall(r"^([A-Z]+) \?=", makefile, re.MULTILINE))

    for word in command.words[1:]:
        name, is_variable, _ = word.partition("=")
        assert name in (variables if is_variable else targets), str(command)
