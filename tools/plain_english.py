"""`python -m tools.plain_english` finds the words that CONTRIBUTING.md bans: path:line: word: a better word.

It also finds docstrings and comments that begin with "Of", "As", "That of" or "Those of": they have no verb.

It reads the text that a person reads: Markdown outside code; in Python, docstrings, comments and string literals that
contain a space. Text in "double quotes" and in `backquotes` is a quotation and may hold any word. Standard library
only. The exit code is 1 if it finds a word.
"""

import argparse
import ast
import io
import re
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tools.paths import ROOT
from tools.tidiness import files_of

#: A pattern for each banned word, and the better term. A pattern that begins with a capital matches a capital only.
BANNED: Final[tuple[tuple[str, str], ...]] = (
    (r"who(?:so)?ever", "the caller, operator, tenant, handler or worker"),
    (r"what(?:so)?ever", "any, every, or the thing itself"),
    (r"nobody|no one", "name who acts, or use the passive: nothing, no worker, no caller"),
    (r"somebody|someone", "the caller, operator, tenant, handler or worker"),
    (r"people", "callers, operators, tenants, users or readers"),
    (r"letters?", "dead-letter message, or DLQ message"),
    (r"bells?", "alarm"),
    (r"rings?|rang|ringing", "an alarm fires"),
    (r"(?:falls?|fell|is|are) silent", "an alarm resolves"),
    (r"alarms? (?:is|are) over", "an alarm resolves"),
    (r"mend(?:s|ed|ing)?", "fix"),
    (r"amiss", "wrong; say what is wrong"),
    (r"told", "reported, or said"),
    (r"tells? of|telling of", "reports, or shows"),
    (r"(?:another|new|two|second|fresh) (?:life|lives)", "requeue with a fresh set of attempts"),
    (r"without a word", "the worker exited without reporting a result"),
    (r"dead heads?", 'the head that died; `on_dead="skip"` or "block"'),
    (r"what is stored", "the record, item or document"),
    (r"(?:is|are|was|were) (?:no|none)", "is not, has no, or the opposite"),
    (r"There (?:is|are|was|were)", "begin with the thing that acts"),
)
#: Banned in documents only: in a docstring this word often begins a noun phrase that is correct.
BANNED_IN_DOCUMENTS: Final = ((r"What", "begin with the thing itself"),)
#: How a docstring or comment begins that has no verb, and the advice.
FRAGMENT: Final = re.compile(r"(?:Of|As|(?:That|Those) of)\b")
WRITE_A_SENTENCE: Final = "begin with a verb or with the thing itself, and write a whole sentence"
#: Correct English that holds a banned word.
ALLOWED: Final = re.compile(
    r"""\bdead[ -]letters?\b
    |\b(?:capital|lower-?case|upper-?case|small|first|last|single|ASCII)\sletters?\b
    |\bletters?\s(?:and|or)\s(?:digits?|numbers?)\b
    |\b(?:digits?|numbers?)\s(?:and|or)\sletters?\b
    |\b(?:is|are|was|were)\sno\s(?:longer|more|less|fewer|later|earlier|larger|older|greater|sooner)\b
    |\b(?:ring\sbuffers?|key\s?rings?)\b
    |\b(?:is|are|was|were)\s(?-i:None)\b   # the value of Python
    |\bWhat\b[^.!?]*\?   # a question""",
    re.VERBOSE | re.IGNORECASE,
)
#: These two hold the words on purpose.
EXEMPT: Final = frozenset((Path("tools/plain_english.py"), Path("tests/tools/test_plain_english.py")))
PLAIN_FILES: Final = frozenset(("NOTICE",))

#: Calls whose arguments are another author's words: sentences of the AWS documentation.
QUOTING_CALLS: Final = frozenset(("cites",))
#: `world.log(…)` writes a line of a simulated trace. Recorded hashes of traces depend on its words.
TRACES: Final = frozenset(("world", "_world"))


def _compiled(banned: tuple[tuple[str, str], ...]) -> tuple[tuple[re.Pattern[str], str], ...]:
    """A phrase may go over the end of a line."""
    return tuple(
        (
            re.compile(rf"\b(?:{pattern})\b".replace(" ", r"\s+"), 0 if pattern[0].isupper() else re.IGNORECASE),
            better,
        )
        for pattern, better in banned
    )


_WORDS: Final = _compiled(BANNED)
_WORDS_OF_DOCUMENTS: Final = _compiled(BANNED + BANNED_IN_DOCUMENTS)
#: What of a Markdown file is not prose: code, comments, where links lead.
_NOT_PROSE: Final = re.compile(
    r"^(?P<fence>```|~~~).*?^(?P=fence)|<!--.*?-->|(?<=\])\([^)\n]*\)|^\[[^\]]+\]:.*?$", re.MULTILINE | re.DOTALL
)
#: What any text holds that is not its author's own words. A quotation may go over a line's end, not a paragraph's.
_QUOTED: Final = re.compile(r"``?[^`]+``?|https?://\S+|\"(?:[^\"\n]|\n(?!\s*\n))*\"|“[^”]*”")
_COMMENT_MARK: Final = re.compile(r"#:? ?")


@dataclass(frozen=True, slots=True, order=True)
class Finding:
    path: Path
    line: int
    word: str
    better: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.word}: {self.better}"


@dataclass(frozen=True, slots=True)
class _Text:
    """Words of a person, and the number of each line they stand on."""

    words: str
    first_line: int


def findings(root: Path, *, names: bool = False) -> Iterator[Finding]:
    """In the order of the files. `names` reads the names of tests as sentences, too."""
    for path in sorted(_files(root)):
        name = path.relative_to(root)
        if name not in EXEMPT:
            for text in _texts(path, names=names):
                yield from _found(text, name)
            if path.suffix == ".py":
                yield from _fragments(path.read_text(encoding="utf-8"), name)


def _files(root: Path) -> Iterator[Path]:
    for path in files_of(root):
        if path.name.endswith((".md", ".py", "Makefile")) or path.name in PLAIN_FILES:
            yield path


def _found(text: _Text, name: Path) -> Iterator[Finding]:
    words = ALLOWED.sub(_blank, _QUOTED.sub(_blank, text.words))
    for pattern, better in _WORDS if name.suffix == ".py" else _WORDS_OF_DOCUMENTS:
        for match in pattern.finditer(words):
            line = text.first_line + words.count("\n", 0, match.start())
            yield Finding(name, line, " ".join(match[0].split()).lower(), better)


def _fragments(source: str, name: Path) -> Iterator[Finding]:
    """The docstrings and comments that begin as a fragment."""
    for text in (*_comments(source), *_docstrings(ast.parse(source))):
        if begins := FRAGMENT.match(text.words):
            yield Finding(name, text.first_line, begins[0], WRITE_A_SENTENCE)


def _docstrings(tree: ast.AST) -> Iterator[_Text]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            words = ast.get_docstring(node)
            if words is not None:
                yield _Text(words, node.body[0].lineno)


def _blank(match: re.Match[str]) -> str:
    """Return blanks of the same length and lines, so that the text behind stays where it is."""
    return re.sub(r"[^\n]", " ", match[0])


def _texts(path: Path, *, names: bool) -> Iterator[_Text]:
    source = path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        yield from _comments(source)
        yield from _strings(ast.parse(source), names=names)
    elif path.name == "Makefile":
        for number, line in enumerate(source.splitlines(), start=1):
            yield _Text(line.partition("#")[2], number)
    else:
        yield _Text(_NOT_PROSE.sub(_blank, source), 1)


def _comments(source: str) -> Iterator[_Text]:
    """Comments on lines one after another are one text: a phrase may go over a line's end."""
    block: list[str] = []
    last = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        if block and token.start[0] != last + 1:
            yield _Text("\n".join(block), last - len(block) + 1)
            block = []
        block.append(_COMMENT_MARK.sub("", token.string, count=1))
        last = token.start[0]
    if block:
        yield _Text("\n".join(block), last - len(block) + 1)


def _strings(tree: ast.AST, *, names: bool) -> Iterator[_Text]:
    """String literals that contain a space, those of an f-string as one; of one over several lines the first counts."""
    inside: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (_quotes(node.func) or _traces(node.func)):
            inside.update(id(part) for part in ast.walk(node))
            continue
        if id(node) in inside:
            continue
        if isinstance(node, ast.JoinedStr):
            inside.update(id(part) for part in node.values)
            parts = (part.value if isinstance(part, ast.Constant) else "…" for part in node.values)
            words = "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            words = node.value
        elif names and isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            words = node.name.replace("_", " ")
        else:
            continue
        if " " in words:
            yield _Text(words, node.lineno)


def _quotes(function: ast.expr) -> bool:
    return isinstance(function, ast.Name) and function.id in QUOTING_CALLS


def _traces(function: ast.expr) -> bool:
    if not isinstance(function, ast.Attribute) or function.attr != "log":
        return False
    owner = function.value
    return (isinstance(owner, ast.Name) and owner.id in TRACES) or (
        isinstance(owner, ast.Attribute) and owner.attr in TRACES
    )


def _counted(found: list[Finding]) -> Iterator[str]:
    """Counts per word and per top folder."""
    for heading, counts in (
        ("word", Counter(finding.word for finding in found)),
        ("folder", Counter(finding.path.parts[0] if len(finding.path.parts) > 1 else "." for finding in found)),
    ):
        yield f"{'count':>6}  {heading}"
        yield from (f"{count:6}  {key}" for key, count in sorted(counts.items(), key=lambda one: (-one[1], one[0])))
    yield f"{len(found):6}  in all"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.plain_english", description="Find banned words in prose.")
    parser.add_argument("--count", action="store_true", help="print counts per word and per top folder")
    parser.add_argument("--names", action="store_true", help="read the names of tests as sentences, too")
    parser.add_argument("--root", type=Path, default=ROOT, help="the folder to read; by default this repository")
    options = parser.parse_args()
    found = sorted(findings(options.root, names=options.names))
    sys.stdout.writelines(f"{line}\n" for line in (_counted(found) if options.count else found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
