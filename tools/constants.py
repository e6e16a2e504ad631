"""`python -m tools.constants` prints docs/internals/constants.md: the fixed numbers and times of the engine."""

import ast
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from tools.paths import ROOT

_ENGINE: Final = ROOT / "shared"
_PACKAGES: Final = ("domain", "application", "dynamodb", "sqs", "worker", "powertools")
_UNITS: Final = {
    timedelta(days=1): "d",
    timedelta(hours=1): "h",
    timedelta(minutes=1): "min",
    timedelta(seconds=1): "s",
    timedelta(milliseconds=1): "ms",
    timedelta(microseconds=1): "µs",
}
_HEAD: Final = """\
# Constants

`make docs` writes this file from the constants of the engine: its bounds, tries, pauses and sizes that no setting
changes. Those that users meet are in [limits](../reference/limits-of-the-system.md). A change of one is a line in the
diff of this page, for a reviewer to weigh. The meaning is the comment in the code. Without one, that of the
constant above may say both.
"""


def document() -> str:
    return "\n".join([_HEAD, *(line for package in _PACKAGES for line in _package(package))])


def _package(package: str) -> Iterator[str]:
    yield from (f"## {package}", "", "| constant | value | meaning |", "|---|---|---|")
    for path in sorted((_ENGINE / "tidemill" / package).rglob("*.py")):
        for name, value, comment in _constants(path):
            short = path.relative_to(_ENGINE / "tidemill" / package).with_suffix("").as_posix()
            yield f"| `{short}.{name.lstrip('_')}` | {value} | {comment} |"
    yield ""


def _constants(path: Path) -> Iterator[tuple[str, str, str]]:
    module = import_module(".".join(path.relative_to(_ENGINE).with_suffix("").parts))
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    for node in ast.parse(text).body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            value = shown(getattr(module, node.target.id))
            if value is not None:
                yield node.target.id, value, _comment(lines, node.lineno)


def _comment(lines: list[str], line: int) -> str:
    """The comment above a constant."""
    above: list[str] = []
    for text in reversed(lines[: line - 1]):
        if not text.startswith("#"):
            break
        above.insert(0, text.lstrip("#: "))
    return re.sub(r"(https?://\S+[^\s:,.])", r"<\1>", " ".join(above)).replace("|", "\\|")


def shown(value: Any) -> str | None:
    """None of any other value."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return f"{value:,}"
    if isinstance(value, timedelta):
        unit = next((unit for unit in _UNITS if value >= unit and not value % unit), timedelta(seconds=1))
        return f"{value // unit:,} {_UNITS[unit]}"
    if is_dataclass(value) and not isinstance(value, type):
        parts = {field.name: shown(getattr(value, field.name)) for field in fields(value)}
        known = [f"{name} {part}" for name, part in parts.items() if part is not None]
        return ", ".join(known) if len(known) == len(parts) else None
    return None


if __name__ == "__main__":
    print(document(), end="")
