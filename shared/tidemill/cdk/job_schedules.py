"""Finds the job types, and the periodic ones, by parsing their source: synth lacks the dependencies to import them.

May not import CDK. A test checks that the functions find the same types when they import the source.
"""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tidemill.cdk.synth_errors import SynthError
from tidemill.domain import schedule_times

#: The decorator that declares a job type: `tidemill.job_type_decorator.job_type(name, ..., schedule=...)`.
MODULE: Final = "tidemill"
DECORATOR: Final = "job_type"
#: Its `commit` for types whose jobs are claimed and settled together.
GROUPED: Final = "grouped"


class ScheduleError(SynthError):
    """A schedule that cannot be read from the source, or that EventBridge Scheduler would refuse."""


@dataclass(frozen=True)
class Periodic:
    """A job type that the scheduler submits."""

    type: str
    #: `rate(1 hour)` or `cron(0 3 * * ? *)`, in UTC.
    expression: str


def periodic(packages: Iterable[str], *, root: Path) -> list[Periodic]:
    """The periodic types in the modules of `packages`, below the folder `root`. Raises `ScheduleError`."""
    found: dict[str, Periodic] = {}
    for declared in _all_declared(packages, root):
        if declared.schedule is None:
            continue
        name = _literal(declared.name, "the name of a periodic type", declared.here)
        schedule = _literal(declared.schedule, "schedule of a periodic type", declared.here)
        if name in found:
            raise ScheduleError(f"{declared.here}: job type {name!r} is declared twice: rename one of them")
        found[name] = Periodic(name, _expression(schedule, declared.here))
    return list(found.values())


def type_names(packages: Iterable[str], *, root: Path) -> list[str]:
    """The names of all types in the same modules, for their alarms. Raises `ScheduleError`.

    A name may be a constant, also of another module of the app.
    """
    return [
        _literal(_resolved(declared.name, declared.module, root), "the name of a type (metrics_by_type)", declared.here)
        for declared in _all_declared(packages, root)
    ]


def any_grouped(packages: Iterable[str], *, root: Path) -> bool:
    """Whether a type in the same modules has grouped commit, which its workers need a right for.

    Raises `ScheduleError`.
    """
    return any(
        _literal(declared.commit, "commit", declared.here) == GROUPED
        for declared in _all_declared(packages, root)
        if declared.commit is not None
    )


def _resolved(name: ast.expr | None, module: ast.Module, root: Path) -> ast.expr | None:
    """The value of a constant that `module` assigns, or imports from a module that assigns it; otherwise `name`."""
    if not isinstance(name, ast.Name):
        return name
    for node in module.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(target, ast.Name) and target.id == name.id for target in targets):
                return node.value
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                if (alias.asname or alias.name) == name.id:
                    return _imported(node.module, alias.name, root) or name
    return name


def _imported(module: str, name: str, root: Path) -> ast.expr | None:
    """From the folders that the functions import from."""
    for folder in (root, root / "shared"):
        source = folder / f"{module.replace('.', '/')}.py"
        if source.is_file():
            return _resolved(ast.Name(name), _parsed(source, source.relative_to(root).as_posix()), root)
    return None


@dataclass(frozen=True)
class _Declaration:
    """One call of the decorator."""

    module: ast.Module
    name: ast.expr | None
    #: None for a type that is not periodic.
    schedule: ast.expr | None
    commit: ast.expr | None
    #: File and line.
    here: str


def parsed_modules(packages: Iterable[str], root: Path) -> Iterator[tuple[ast.Module, str]]:
    """The modules of `packages`, and the path of each below `root`. Raises `ScheduleError`."""
    for package in packages:
        for source in _modules(root / package.replace(".", "/")):
            where = source.relative_to(root).as_posix()
            yield _parsed(source, where), where


def _all_declared(packages: Iterable[str], root: Path) -> Iterator[_Declaration]:
    for module, where in parsed_modules(packages, root):
        yield from _declared(module, where)


def _modules(folder: Path) -> list[Path]:
    """The files that `job_type_loader` imports: the modules of the package and of its sub-packages."""
    return sorted(folder.rglob("*.py"))


def _parsed(source: Path, where: str) -> ast.Module:
    try:
        return ast.parse(source.read_bytes())
    except (SyntaxError, ValueError) as error:
        raise ScheduleError(f"{where} is not valid Python: {error}") from error


def _declared(module: ast.Module, where: str) -> Iterator[_Declaration]:
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
                    f"{here}: write out the options of {DECORATOR}: synth reads the source and cannot evaluate **"
                )
            schedule = options.get("schedule")
            if isinstance(schedule, ast.Constant) and schedule.value is None:
                schedule = None
            name = node.args[0] if node.args else options.get("name")
            yield _Declaration(module, name, schedule, options.get("commit"), here)


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
    raise ScheduleError(f"{here}: write {what} as a string literal: synth reads it from the source")


def _expression(text: str, here: str) -> str:
    try:
        schedule_times.parse(text)
    except ValueError as error:
        raise ScheduleError(f"{here}: {error}") from None
    return text
