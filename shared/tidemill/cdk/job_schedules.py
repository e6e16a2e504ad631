"""Finds the periodic job types in their source, since a synth has nothing that would let it import them.

May not import CDK. What it finds is what the functions find when they import: a test compares the two.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tidemill.cdk.config import SynthError

#: What a job type is declared with: `tidemill.job_type_decorator.job_type(name, ..., schedule=...)`.
MODULE: Final = "tidemill"
DECORATOR: Final = "job_type"
#: https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html
RATE: Final = re.compile(r"rate\((1 (minute|hour|day)|(?!0|1 )\d{1,5} (minutes|hours|days))\)")
CRON: Final = re.compile(r"cron\(([\w,*/-]+ ){2}([\w,*/?-]+) ([\w,*/-]+) ([\w,*/?#-]+) [\d,*/-]+\)")


class ScheduleError(SynthError):
    """A schedule that cannot be read, or that EventBridge Scheduler would not take."""


@dataclass(frozen=True)
class Periodic:
    """A job type that the clock submits."""

    type: str
    #: `rate(1 hour)` or `cron(0 3 * * ? *)`, in UTC.
    expression: str


def periodic(packages: Iterable[str], *, root: Path) -> list[Periodic]:
    """The periodic types in the modules of `packages`, which lie under `root`. Raises `ScheduleError`."""
    found: dict[str, Periodic] = {}
    for package in packages:
        for source in _modules(root / package.replace(".", "/")):
            where = source.relative_to(root).as_posix()
            for declared in _declared(_parsed(source, where), where):
                if found.setdefault(declared.type, declared) is not declared:
                    raise ScheduleError(f"{where}: job type {declared.type!r} is declared for the second time")
    return list(found.values())


def _modules(folder: Path) -> list[Path]:
    """Those that `job_type_loader` imports: not the package itself, and of one below it the beginning."""
    return sorted({*folder.glob("*.py"), *folder.glob("*/__init__.py")} - {folder / "__init__.py"})


def _parsed(source: Path, where: str) -> ast.Module:
    try:
        return ast.parse(source.read_bytes())
    except (SyntaxError, ValueError) as error:
        raise ScheduleError(f"{where} is not Python: {error}") from error


def _declared(module: ast.Module, where: str) -> Iterator[Periodic]:
    names = {
        alias.asname or alias.name
        for node in ast.walk(module)
        if isinstance(node, ast.ImportFrom) and node.module == MODULE
        for alias in node.names
        if alias.name == DECORATOR
    }
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and _calls(node, names):
            here = f"{where}, line {node.lineno}"
            options = {keyword.arg: keyword.value for keyword in node.keywords}
            if None in options:
                raise ScheduleError(
                    f"{here}: write the options of {DECORATOR} out; a schedule behind ** cannot be read"
                )
            schedule = options.get("schedule")
            if schedule is None or (isinstance(schedule, ast.Constant) and schedule.value is None):
                continue
            name = node.args[0] if node.args else options.get("name")
            yield Periodic(_literal(name, "the name", here), _expression(_literal(schedule, "schedule", here), here))


def _calls(call: ast.Call, names: set[str]) -> bool:
    match call.func:
        case ast.Name(id=name):
            return name in names
        case ast.Attribute(attr=name):
            return name == DECORATOR
        case _:
            return False


def _literal(node: ast.expr | None, what: str, here: str) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    raise ScheduleError(f"{here}: write {what} of a periodic type out as a string: the stack reads it from the source")


def _expression(text: str, here: str) -> str:
    cron = CRON.fullmatch(text)
    if not RATE.fullmatch(text) and not cron:
        raise ScheduleError(f"{here}: {text!r} is neither like rate(1 hour) nor like cron(0 3 * * ? *)")
    if cron and cron.group(2, 4).count("?") != 1:
        raise ScheduleError(
            f"{here}: {text!r} must have ? for one of the day of the month and the day of the week, and not for both"
        )
    return text
