"""Each command of the README and the documents is one that the command line and the Makefile accept."""

import re
import shlex
from collections.abc import Iterator
from contextlib import suppress
from itertools import takewhile
from pathlib import Path

import click
import pytest

from tidemill.cli.main import tidemill

ROOT = Path(__file__).parents[3]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(ROOT.glob("docs/**/*.md"))]
#: A word of a command that stands for any one or more of the user's own.
ANYTHING = re.compile(r"…|COMMAND")


def _commands(page: Path, program: str) -> Iterator[str]:
    """The commands in code spans, and in the lines of code blocks that are not Python."""
    text = page.read_text()
    for block in re.findall(r"^```(?!python|mermaid).*?\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        joined = re.sub(r"\\\n\s*", " ", block)
        yield from re.findall(rf"^(?:\$ )?({program} .+)$", joined, re.MULTILINE)
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    yield from (" ".join(span.split()) for span in re.findall(rf"`({program} [^`]+)`", prose))


def _parse(command: click.Command, words: list[str], parent: click.Context | None = None) -> None:
    """As the command line does before it acts. Raises `click.UsageError`."""
    with command.make_context(command.name, list(words), parent=parent) as context:
        if isinstance(command, click.Group):
            _, found, rest = command.resolve_command(context, [*context._protected_args, *context.args])
            assert found is not None
            _parse(found, rest, context)


TIDEMILL = sorted({command for page in DOCUMENTS for command in _commands(page, "tidemill")})
MAKE = sorted({command for page in DOCUMENTS for command in _commands(page, "make")})


@pytest.mark.parametrize("command", TIDEMILL)
def test_the_command_line_accepts_it(command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "jobs.jsonl").touch()
    words = shlex.split(re.split(r"[|<>]", command)[0], comments=True)[1:]
    given = list(takewhile(lambda word: not ANYTHING.search(word), words))
    if given != words or given[1:] == []:
        # The text names the command, or leaves out what it takes.
        given += ["--help"]
    # `--help` ends the parsing. Wrong usage raises another error.
    with suppress(click.exceptions.Exit):
        _parse(tidemill, given)


@pytest.mark.parametrize("command", MAKE)
def test_the_makefile_has_it(command: str) -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    variables = set(re.findall(r"^([A-Z]+) \?=", makefile, re.MULTILINE))

    for word in shlex.split(re.split(r"&&|;|\|", command)[0], comments=True)[1:]:
        name, is_variable, _ = word.partition("=")
        assert name in (variables if is_variable else targets), command
