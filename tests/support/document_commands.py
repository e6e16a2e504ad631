"""The commands that the README and the documents show, in their blocks and in the code spans of their text."""

import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import Final

from tests.support.document_blocks import DOCUMENTS, ROOT, page_of

#: A word that stands for the output of a `date`.
TIME_AHEAD: Final = "TIME_AHEAD"
#: Its group is the command whose output takes its place.
SUBSTITUTION: Final = re.compile(r"\$\(([^()]*)\)")
#: What may stand before a program: a prompt, a variable, or a program that calls it.
_BEFORE: Final = re.compile(r"\$|npx|xargs|[A-Z_]+=.*")


@dataclass(frozen=True, slots=True)
class Command:
    """A program and its arguments, as the shell passes them on."""

    #: Relative to the root of the repository.
    page: str
    #: From 1; zero for a code span.
    line: int
    words: tuple[str, ...]

    def __str__(self) -> str:
        return shlex.join(self.words)


def commands_of(program: str) -> Sequence[Command]:
    """Each command of `program`; those with the same words once, in the order of the documents."""
    found = {
        command.words: command
        for command in reversed(all_commands())
        if command.words[0] == program and command.words[1:]
    }
    return list(reversed(found.values()))


@cache
def all_commands() -> Sequence[Command]:
    """Lines of output are among them, too, since each begins with a word."""
    return list(_all_commands())


def _all_commands() -> Iterator[Command]:
    for path in DOCUMENTS:
        page, name = page_of(path), path.relative_to(ROOT).as_posix()
        for block in (block for block in page.blocks if block.tag != "python"):
            for line, text in _logical_lines(block.text):
                yield from (Command(name, block.line + line, words) for words in _split(text))
        for span in re.findall(r"`([\w./]+ [^`]+)`", page.prose):
            yield from (Command(name, 0, words) for words in _split(" ".join(span.split())))


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Each line with its number from 1. A backslash at its end joins the next one."""
    begins, parts = 1, []
    for number, line in enumerate(text.splitlines(), 1):
        parts.append(line.removesuffix("\\"))
        if not line.endswith("\\"):
            yield begins, " ".join(parts)
            begins, parts = number + 1, []


def _split(line: str) -> Iterator[tuple[str, ...]]:
    """The commands of a line of the shell, also those that it substitutes. Text that the shell refuses has none."""
    for inner in SUBSTITUTION.findall(line):
        yield from _split(inner)
    lexer = shlex.shlex(SUBSTITUTION.sub(_substituted, line), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError:
        return
    for ends, group in groupby(words, key=lambda word: set(word) <= set("();<>|&")):
        command = list(group)
        while command and _BEFORE.fullmatch(command[0]):
            del command[0]
        if command and not ends:
            yield tuple(command)


def _substituted(found: re.Match[str]) -> str:
    return TIME_AHEAD if found[1].startswith("date ") else "1"
