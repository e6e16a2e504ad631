"""Reads from the runbook the commands that end an incident."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from demo.drills.errors import DrillError

RUNBOOK: Final = Path(__file__).parents[2] / "docs" / "operations" / "runbook.md"
#: A word that stands for a value which the operator reads from `tidemill status` or from the alarm.
PLACEHOLDER: Final = re.compile(r"\b[A-Z][A-Z_]{2,}\b")


def fix(drill: str, *, heading: str, runbook: Path = RUNBOOK) -> Sequence[str]:
    """The lines of the block of the drill below the heading with this anchor. Raises DrillError."""
    for title, page in re.findall(r"(?ms)^## (.+?)$(.*?)(?=^## |\Z)", runbook.read_text(encoding="utf-8")):
        if anchor(title) == heading and (block := re.search(rf"(?ms)^```sh {re.escape(drill)}\n(.*?)^```", page)):
            return [line for line in block[1].splitlines() if line.strip()]
    raise DrillError(f"the runbook has no block `{drill}` below the heading #{heading}")


def anchor(title: str) -> str:
    """The fragment by which a link names a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-")


def filled(line: str, values: Mapping[str, str]) -> str:
    """The line with the values of its placeholders. Words that have none stay."""
    return PLACEHOLDER.sub(lambda found: values.get(found[0], found[0]), line)


def names(runbook: Path = RUNBOOK) -> Sequence[str]:
    """The drills whose blocks are in the runbook."""
    return re.findall(r"(?m)^```sh ([\w-]+)$", runbook.read_text(encoding="utf-8"))
