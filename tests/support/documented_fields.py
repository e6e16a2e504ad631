"""The names that the tables of a page document: those in the first column, in backticks."""

import re

from stacks.composition import ROOT


def documented_fields(page: str) -> set[str]:
    """`page` is a path below the root of the repository."""
    rows = re.findall(r"^\| (`[^|]+) \|", (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`(\w+)`", row)}
