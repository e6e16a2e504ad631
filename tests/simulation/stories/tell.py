"""Find the stories, tell them, and compare them with their records."""

import difflib
import importlib
import pkgutil
from collections.abc import Callable, Mapping
from functools import cache
from itertools import islice
from typing import Final

from tests.simulation.stories import RECORDS, sent_twice, tales
from tests.simulation.stories.stage import Stage, stage

_LINES_OF_A_DIFFERENCE: Final = 40
_SENT_TWICE: Final = "-with-writes-sent-twice"

Story = Callable[[Stage], None]


@cache
def stories() -> Mapping[str, Story]:
    """By name: each public function of a module in `tales`, and those of `sent_twice`."""
    found: dict[str, Story] = {}
    for module in pkgutil.iter_modules(tales.__path__):
        for name, told in vars(importlib.import_module(f"{tales.__name__}.{module.name}")).items():
            if getattr(told, "__module__", "") == f"{tales.__name__}.{module.name}" and not name.startswith("_"):
                found[name.replace("_", "-")] = told
    again = {
        f"{told.__name__.replace('_', '-')}{_SENT_TWICE}": _with_writes_sent_twice(told) for told in sent_twice.STORIES
    }
    return found | again


def _with_writes_sent_twice(story: Story) -> Story:
    def again(stage: Stage) -> None:
        stage.sends_writes_twice()
        story(stage)

    return again


def told(name: str) -> str:
    """The record of the story as it goes now."""
    with stage() as (where, record):
        stories()[name](where)
        return record.text()


def difference(name: str) -> str | None:
    """Where the story goes another way than its record; None if it does not."""
    path = RECORDS / f"{name}.txt"
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    now = told(name)
    if now == before:
        return None
    lines = difflib.unified_diff(before.splitlines(), now.splitlines(), "record", "now", n=2, lineterm="")
    return "\n".join(islice(lines, _LINES_OF_A_DIFFERENCE))
