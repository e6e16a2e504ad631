"""Find the stories, tell them, and compare them with their records."""

import difflib
import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import Final

from tests.simulation.stories import RECORDS, tales
from tests.simulation.stories.stage import Stage, stage

_LINES_OF_A_DIFFERENCE: Final = 40

Story = Callable[[Stage], None]


@cache
def stories() -> Mapping[str, Story]:
    """By name: each public function of a module in `tales`."""
    found: dict[str, Story] = {}
    for module in pkgutil.iter_modules(tales.__path__):
        for name, told in vars(importlib.import_module(f"{tales.__name__}.{module.name}")).items():
            if getattr(told, "__module__", "") == f"{tales.__name__}.{module.name}" and not name.startswith("_"):
                found[name.replace("_", "-")] = told
    return found


def told(name: str) -> str:
    """The record of the story as it goes now."""
    with stage() as (where, record):
        stories()[name](where)
        return record.text()


def answers(name: str, *, writes_sent_twice: bool = False) -> Sequence[str]:
    """The answers that callers and operators get in the story. With `writes_sent_twice`, each write is sent twice."""
    with stage() as (where, record):
        if writes_sent_twice:
            where.sends_writes_twice()
        stories()[name](where)
        return record.answers


def difference(name: str) -> str | None:
    """Where the story goes another way than its record; None if it does not."""
    path = RECORDS / f"{name}.txt"
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    now = told(name)
    if now == before:
        return None
    lines = difflib.unified_diff(before.splitlines(), now.splitlines(), "record", "now", n=2, lineterm="")
    return "\n".join(islice(lines, _LINES_OF_A_DIFFERENCE))
