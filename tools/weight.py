"""`python -m tools.weight` prints how much code there is, where, and how it is divided.

A line of code holds at least one token, other than a comment, that belongs neither to an import nor to a docstring. So
a longer explanation changes no figure, and another way to wrap an import does not either.
"""

import ast
import io
import statistics
import sys
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from tools.paths import ROOT

ENGINE: Final = ROOT / "shared" / "tidemill"
TESTS: Final = ROOT / "tests"
DOCS: Final = ROOT / "docs"
#: A module below this length is often a part of another.
SHORT_MODULE_LINES: Final = 60
_NO_CODE: Final = frozenset(
    (
        tokenize.COMMENT,
        tokenize.NL,
        tokenize.NEWLINE,
        tokenize.INDENT,
        tokenize.DEDENT,
        tokenize.ENCODING,
        tokenize.ENDMARKER,
    )
)


def code_lines(text: str) -> int:
    """The lines of code of a module: see above."""
    lines = set[int]()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NO_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import | ast.ImportFrom | ast.Expr) and not _runs(node):
            lines.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


def _runs(node: ast.Import | ast.ImportFrom | ast.Expr) -> bool:
    """False for an import, and for a statement that is only a text, which Python drops."""
    if not isinstance(node, ast.Expr):
        return False
    return not (isinstance(node.value, ast.Constant) and isinstance(node.value.value, str))


def measured(folder: Path) -> dict[Path, int]:
    """The lines of code of each module below a folder, without the empty ones that make a folder a package."""
    found = {path: code_lines(path.read_text(encoding="utf-8")) for path in sorted(folder.rglob("*.py"))}
    return {path: lines for path, lines in found.items() if lines or path.name != "__init__.py"}


def words(folder: Path) -> int:
    return sum(len(path.read_text(encoding="utf-8").split()) for path in folder.rglob("*.md"))


def repeated_names(modules: Iterable[Path]) -> dict[str, list[str]]:
    """The file names that occur more than once within a layer, by `layer/name`."""
    found: dict[str, list[str]] = {}
    for path in modules:
        parts = path.relative_to(ENGINE).parts
        if len(parts) > 1 and path.name != "__init__.py":
            found.setdefault(f"{parts[0]}/{path.name}", []).append("/".join(parts))
    return {name: paths for name, paths in found.items() if len(paths) > 1}


def report() -> Iterator[str]:
    engine, tests = measured(ENGINE), measured(TESTS)
    records = list((TESTS / "simulation" / "stories" / "records").glob("*"))
    size = sum(path.stat().st_size for path in records)
    short = sum(lines < SHORT_MODULE_LINES for lines in engine.values())
    folders = Counter(path.parent.relative_to(ENGINE.parent).as_posix() for path in engine)
    longest = ", ".join(f"{name} {count}" for name, count in folders.most_common(6))
    yield f"engine            {sum(engine.values()):>7,} lines of code in {len(engine)} modules"
    median = statistics.median(engine.values())
    yield f"a module          {median:>7.0f} lines (median), {short} below {SHORT_MODULE_LINES}"
    yield f"fullest folders   {longest} modules"
    yield f"repeated names    {len(repeated_names(engine)):>7} within a layer"
    yield f"tests             {sum(tests.values()):>7,} lines of code in {len(tests)} modules"
    yield f"tests / engine    {sum(tests.values()) / sum(engine.values()):>7.2f}"
    yield f"golden stories    {len(records):>7} files, {size / 1e6:.2f} MB"
    yield f"docs              {words(DOCS):>7,} words in {sum(1 for _ in DOCS.rglob('*.md'))} pages"


if __name__ == "__main__":
    sys.stdout.writelines(f"{line}\n" for line in report())
