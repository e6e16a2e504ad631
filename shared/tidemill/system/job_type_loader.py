"""Discovers the job types, event types and sources in the modules of the given packages and their sub-packages."""

import importlib
import sys
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from types import ModuleType

from tidemill.application.declarations import Declaration, declared_by
from tidemill.application.event_types import EventSource, EventType
from tidemill.application.job_types import JobType, JobTypes
from tidemill.domain.error_text import class_name, text_of
from tidemill.domain.errors import DuplicateJobTypeError, JobFileError
from tidemill.domain.limits.limits import Limit
from tidemill.system.module_files import importable, module_folders


def load(packages: Iterable[str]) -> JobTypes:
    """Import `packages` and every module below them, and collect their module-level job types and event types.

    Raises `JobFileError`.
    """
    job_types = load_sound(packages)
    for fault in job_types.faults:
        raise fault
    return job_types


def load_sound(packages: Iterable[str]) -> JobTypes:
    """Load without the types of broken modules, which are among the `faults` of the result.

    A name that two modules declare is left out, because either may be the one that a job was submitted for.
    """
    found: dict[str, JobType] = {}
    events: dict[tuple[str, int], EventType] = {}
    sources: dict[str, EventSource] = {}
    declared: list[Declaration] = []
    faults: list[JobFileError] = []
    for package in packages:
        for module in _modules(package, faults):
            declared += declared_by(module)
            for value in vars(module).values():
                if isinstance(value, JobType) and (other := found.setdefault(value.name, value)) is not value:
                    detail = f"job type {value.name!r} is already declared in {declared_at(other)}"
                    faults.append(DuplicateJobTypeError(f"{declared_at(value)}: {detail}", [value.name]))
                if isinstance(value, EventType) and (first := _first(events, value)) is not value:
                    detail = f"version {value.version} of event type {value.name!r} is already declared"
                    faults.append(JobFileError(f"{declared_at(value)}: {detail} in {declared_at(first)}"))
                if isinstance(value, EventSource) and (known := sources.setdefault(value.name, value)) is not value:
                    detail = f"source {value.name!r} is already declared in {declared_at(known)}"
                    faults.append(JobFileError(f"{declared_at(value)}: {detail}"))
    faults += _unnamed(declared, [*found.values(), *events.values(), *sources.values()])
    faults += _differing_limits(found.values())
    disabled = {name for fault in faults for name in fault.names}
    sound = {name: job_type for name, job_type in found.items() if name not in disabled}
    return JobTypes(sound, faults, events, sources)


def _unnamed(declared: Iterable[Declaration], found: Collection[Declaration]) -> Iterator[JobFileError]:
    """Those in a class, a list or a function. Their jobs would be refused, and nothing would say why."""
    known = set(map(_identity, found))
    for declaration in declared:
        if (identity := _identity(declaration)) not in known:
            kind, name, _ = identity
            yield JobFileError(
                f"{declared_at(declaration)}: {kind} {name!r} is not found, because no name of its module leads to it: "
                "bind it to a name of the module",
                [name] if isinstance(declaration, JobType) else (),
            )


def _identity(declaration: Declaration) -> tuple[str, str, int | None]:
    """Identify the type by its name, not the object: `consumes` makes another type, and a reload declares anew."""
    match declaration:
        case JobType(name=name):
            return "job type", name, None
        case EventType(name=name, version=version):
            return "event type", name, version
        case EventSource(name=name):
            return "source", name, None


def _differing_limits(job_types: Iterable[JobType]) -> Iterator[JobFileError]:
    """Types that share a limit have one item for it, so all of them must mean the same limit."""
    shared: dict[str, JobType] = {}
    for job_type in job_types:
        if (name := job_type.shared_limit) is None:
            continue
        other = shared.setdefault(name, job_type)
        if _declared_limit(other) != _declared_limit(job_type):
            yield JobFileError(
                f"{declared_at(job_type)}: the shared limit {name!r} of {job_type.name!r} differs from that of "
                f"{other.name!r} in {declared_at(other)}: declare it once and import it, or give it another name",
                [job_type.name],
            )


def _declared_limit(job_type: JobType) -> tuple[Limit | None, bool, bool]:
    return job_type.limit, job_type.limit_spans_tenants, job_type.limit_per_lane


def _first(events: dict[tuple[str, int], EventType], event_type: EventType) -> EventType:
    return events.setdefault((event_type.name, event_type.version), event_type)


def require_models(job_types: JobTypes) -> None:
    """Raises `JobFileError` for a model that cannot validate, because a type in it has no name at run time."""
    from pydantic.errors import PydanticUserError  # noqa: PLC0415 - at synth only

    types = map(job_types.get, job_types.names())
    declarations: list[Declaration] = [*types, *job_types.events.values(), *job_types.sources.values()]
    for declaration in declarations:
        try:
            if declaration.schema:
                declaration.schema()
        except PydanticUserError as error:
            if error.code == "class-not-fully-defined":
                kind, name, _ = _identity(declaration)
                raise JobFileError(
                    f"{declared_at(declaration)}: the model of {kind} {name!r} cannot validate: {error.message}; "
                    "import the types of its fields outside of `if TYPE_CHECKING`"
                ) from error
        except Exception:  # noqa: BLE001, S112 - a model without a schema may validate
            continue


def require_packages(packages: Iterable[str]) -> None:
    """Raises `JobFileError` for a folder of modules without `__init__.py`, which `load` would pass over."""
    for package in packages:
        for folder in (folder for path in _imported(package).__path__ for folder in module_folders(Path(path))):
            if not (folder / "__init__.py").is_file() and not all(path.is_dir() for path in importable(folder)):
                raise JobFileError(f"{_shown(str(folder))} has no __init__.py, so its job types are not found: add one")


def _modules(package: str, faults: list[JobFileError]) -> Iterator[ModuleType]:
    """The package and the sound modules below it. The broken ones are added to `faults`."""
    if (root := _sound(package, faults)) is None:
        return
    yield root
    for name, is_package in sorted(_children(root)):
        if is_package:
            yield from _modules(f"{package}.{name}", faults)
        elif module := _sound(f"{package}.{name}", faults):
            yield module


def _children(root: ModuleType) -> Iterable[tuple[str, bool]]:
    """The name of each module and package of the package, and whether it is a package, which hides a module."""
    found: dict[str, bool] = {}
    for path in (path for folder in root.__path__ for path in importable(Path(folder))):
        if not path.is_dir():
            found.setdefault(path.stem, False)
        elif (path / "__init__.py").is_file():
            found[path.name] = True
    found.pop("__init__", None)
    return found.items()


def _sound(name: str, faults: list[JobFileError]) -> ModuleType | None:
    try:
        return _imported(name)
    except JobFileError as fault:
        faults.append(fault)
        return None


def _imported(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:
        # A module may raise anything while it is imported. Report it with its location.
        reason = error.msg if isinstance(error, SyntaxError) else " ".join(text_of(error).split())
        parts = (_raised(error, name), class_name(error), reason)
        raise JobFileError(": ".join(filter(None, parts))) from error


def _raised(error: BaseException, name: str) -> str:
    """The innermost line of the traceback in the folder of the module; the name of the module if no line is there."""
    if isinstance(error, SyntaxError) and error.filename:
        return _location(error.filename, error.lineno or 1)
    folder = name.rpartition(".")[0].replace(".", "/")
    location, trace = name, error.__traceback__
    while trace:
        file = _shown(trace.tb_frame.f_code.co_filename)
        if file.startswith(f"{folder}/"):
            location = _location(file, trace.tb_lineno)
        trace = trace.tb_next
    return location


def declared_at(declaration: Declaration) -> str:
    """File and line."""
    if isinstance(declaration, EventType | EventSource):
        return _location(declaration.file, declaration.line)
    job_type = declaration
    code = getattr(job_type.handler, "__code__", None)
    return _location(code.co_filename, code.co_firstlineno) if code else job_type.handler.__module__


def _location(file: str, line: int) -> str:
    return f"{_shown(file)}, line {line}"


def _shown(file: str) -> str:
    """The path relative to its source root, so that it is the same on every machine."""
    path = Path(file)
    roots = (Path(root) for root in sys.path if root)
    return next((path.relative_to(root).as_posix() for root in roots if path.is_relative_to(root)), file)
