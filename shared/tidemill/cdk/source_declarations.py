"""Finds the sources of events by parsing their source, as `job_schedules` finds the job types. May not import CDK."""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tidemill.cdk.job_schedules import parsed_modules
from tidemill.cdk.synth_errors import SynthError

#: The decorator: `tidemill.event_sources.event_source(name, publishes=...)`.
DECORATOR: Final = "event_source"


class SourceError(SynthError):
    """A source that no function of the code can serve."""


@dataclass(frozen=True, slots=True)
class _Declared:
    #: The class of the record that the function takes.
    record: str
    #: File and line.
    here: str


def require_source(name: str, record: str, packages: Iterable[str], *, root: Path) -> None:
    """Raises `SourceError` if no function below `packages` is the source of that name, or it takes another record."""
    declared = dict(_all_declared(packages, root))
    if name not in declared:
        known = ", ".join(sorted(declared)) or "none"
        raise SourceError(f"no function is @{DECORATOR}({name!r}, …); known sources: {known}")
    if declared[name].record != record:
        raise SourceError(
            f"{declared[name].here}: source {name!r} takes {declared[name].record or 'a record of no known class'}, "
            f"and its construct delivers {record}"
        )


def _all_declared(packages: Iterable[str], root: Path) -> Iterator[tuple[str, _Declared]]:
    for module, where in parsed_modules(packages, root):
        for node in (each for each in ast.walk(module) if isinstance(each, ast.FunctionDef)):
            for decorator in node.decorator_list:
                if isinstance(decorator, ast.Call) and _last_name(decorator.func) == DECORATOR:
                    here = f"{where}, line {decorator.lineno}"
                    first = decorator.args[0] if decorator.args else None
                    if not isinstance(first, ast.Constant) or not isinstance(first.value, str):
                        raise SourceError(f"{here}: write the name of the source as a string literal")
                    yield first.value, _Declared(_record(node), here)


def _record(function: ast.FunctionDef) -> str:
    arguments = [*function.args.posonlyargs, *function.args.args]
    annotation = arguments[0].annotation if arguments else None
    return _last_name(annotation) if annotation else ""


def _last_name(node: ast.expr) -> str:
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Constant(value=str() as name):
            return name.rpartition(".")[2]
        case _:
            return ""
