"""Patches the shipped code to use the simulated clock, randomness, threads, environment and AWS.

No code of `shared` or `functions` is rewritten or skipped. The patches replace the non-deterministic imports from the
standard library and the one method through which boto3 makes a call. `functools.cache` keeps a value for each
execution environment instead of each interpreter, since one interpreter holds many environments here. The patches last
while a world is entered, so they do not affect other tests.
"""

import functools
import importlib
import logging
import os
import pkgutil
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from concurrent import futures
from datetime import UTC, datetime, timedelta, tzinfo
from types import FrameType, ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, NoReturn

import boto3
from botocore.client import BaseClient

from tests.simulation.world import code_versions, watched_reports
from tests.simulation.world.faults import Fault
from tidemill.application.attempt import traceback_text
from tidemill.application.passes import pass_state, table_pass
from tidemill.aws import clients
from tidemill.cdk.functions.asset import NOT_SHIPPED
from tidemill.dynamodb import document, indexes
from tidemill.system import clock, ids, random_draw
from tidemill.telemetry import handler_output, outcome_log, throttled_writes
from tidemill.telemetry.engine_log import EngineLog
from tidemill.telemetry.line_format import LineFormat
from tidemill.telemetry.line_output import LineOutput

if TYPE_CHECKING:
    from tests.simulation.world.world import World

_ROOT: Final = "tidemill"
#: Parts of the engine that no function imports.
_NOT_SHIPPED: Final = tuple(".".join(parts).removesuffix(".py") for parts in NOT_SHIPPED)
#: A constant that every environment shares, since building it takes longer than a seed.
_CACHED_ONCE: Final = "known_job_types"
#: Scan segments. A small table needs fewer than the engine uses.
_SEGMENTS: Final = 3
#: How long a run holds a pass. Shorter than a run, so that runs meet on one pass.
_HOLD: Final = timedelta(seconds=1)
_SETTINGS: Final = {"POWERTOOLS_TRACE_DISABLED": "true"}
#: Service by the name of its function in `clients`.
_CLIENTS: Final = {name: name for name in ("dynamodb", "sqs", "s3", "cloudwatch")} | {
    "secrets": "secretsmanager",
    "sqs_hints": "sqs",
}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

#: Holder, attribute name, and value while a world is entered.
Patch = tuple[Any, str, Any]


class _Installed:
    """The entered world, and the original values of the patched attributes."""

    world: "World | None" = None
    before: list[Patch]


def enter(world: "World") -> None:
    if _Installed.world is not None:
        raise AssertionError("a world is entered already; leave it first")
    patches = _patches()
    _Installed.before = [(holder, name, getattr(holder, name)) for holder, name, _ in patches]
    for holder, name, value in patches:
        setattr(holder, name, value)
    os.environ.update(_SETTINGS)
    _Installed.world = world


def leave() -> None:
    _Installed.world = None
    for holder, name, value in _Installed.before:
        setattr(holder, name, value)
    for name in _SETTINGS:
        os.environ.pop(name)


def world() -> "World":
    if _Installed.world is None:
        raise AssertionError("no world is entered; call this within `with World(...)`")
    return _Installed.world


def _count_fault(fault: Fault) -> None:
    world().faults.count(fault)


def _environment() -> Mapping[str, str]:
    """The environment of the current process; empty outside processes, where checks read documents."""
    task = world().scheduler.current
    return task.process.environment if task else {}


def _process() -> Any:
    task = world().scheduler.current
    if task is None:
        raise AssertionError("no process runs; call this from a task")
    return task.process


def modules() -> list[ModuleType]:
    """All shipped modules of the engine, imported."""
    package = importlib.import_module(_ROOT)
    for module in pkgutil.walk_packages(package.__path__, prefix=f"{_ROOT}."):
        if _ships(module.name):
            importlib.import_module(module.name)
    return [module for name, module in sorted(sys.modules.items()) if name.partition(".")[0] == _ROOT and _ships(name)]


def _ships(name: str) -> bool:
    return not f"{name}.".startswith(tuple(f"{part}." for part in _NOT_SHIPPED))


@functools.cache
def _patches() -> list[Patch]:
    """All patches, collected once in an interpreter."""
    replacements = _replacements()
    kept: dict[int, Any] = {}
    found: list[Patch] = []
    shipped = modules()
    for module in shipped:
        for name, value in vars(module).items():
            if id(value) in replacements:
                found.append((module, name, replacements[id(value)]))
            elif _is_cached_per_environment(value):
                found.append((module, name, kept.setdefault(id(value), _CachedPerEnvironment(value.__wrapped__))))
    found += [(clients, name, functools.partial(client, service)) for name, service in _CLIENTS.items()]
    return [
        *found,
        *_clock_patches(),
        *code_versions.patches(shipped, _environment, _count_fault),
        *watched_reports.patches(world, _process),
        (indexes, "LARGEST_INDEX_SHARDS", max(code_versions.INDEX_SHARDS)),
        (pass_state, "SEGMENTS", _SEGMENTS),
        (table_pass, "_LONGEST_HOLD", _HOLD),
        (traceback_text, "_formatted", _frames_of_any_machine),
        # All environments share the client, and it emits no event: registering once is enough.
        (throttled_writes, "watch", functools.cache(throttled_writes.watch)),
        (time, "sleep", _threads("sleep")),
        # Where a line was written, and by which thread, is in no line of ours, and takes long to find out.
        # https://docs.python.org/3/howto/logging.html#optimization
        *((logging, name, None) for name in ("_srcfile", "logThreads", "logProcesses", "logMultiprocessing")),
        (BaseClient, "_make_api_call", _call),
    ]


def _frames_of_any_machine(frames: Sequence[tuple[FrameType, int]]) -> list[str]:
    """Without folders and lines of code: how much of a traceback fits must not depend on where the code lies."""

    def text(frame: FrameType) -> str:
        file = frame.f_globals["__name__"].replace(".", "/")
        return f'  File "/{file}.py", line 1, in {frame.f_code.co_name}\n'

    return [text(frame) for frame, _ in frames]


def _threads(name: str) -> Callable[..., Any]:
    """Delegates to the `threads` of the entered world."""

    def made(*given: Any, **named: Any) -> Any:
        return getattr(world().threads, name)(*given, **named)

    return made


def _exit(_status: int) -> NoReturn:
    """`os._exit`: a worker ends its process because of a stray thread."""
    here = world()
    here.faults.count(Fault.STRAY_THREAD)
    here.log(_process().name, "*ends its process")
    here.scheduler.exit()


def _replacements() -> dict[int, Any]:
    """Replacements by identity of the original."""
    to_cloudwatch = _ToCloudWatch(LineFormat(withhold=False), LineOutput())
    threads = SimpleNamespace(**{**vars(threading), "Lock": _threads("lock"), "Event": _threads("event")})
    environ = _Environ()
    # Only these three functions, so that any other use of `time` fails.
    clocks = SimpleNamespace(sleep=_threads("sleep"), monotonic=_monotonic_seconds, time_ns=_nanoseconds)
    return {
        id(time): clocks,
        id(threading): threads,
        id(os): SimpleNamespace(
            **{**vars(os), "environ": environ, "environb": environ, "getenv": environ.get, "_exit": _exit}
        ),
        id(handler_output.streams_intact): lambda: not _process().streams_closed,
        id(futures.ThreadPoolExecutor): _threads("pool"),
        id(futures.wait): _threads("wait"),
        id(futures.as_completed): _threads("as_completed"),
        id(outcome_log.logger): lambda: to_cloudwatch,
        id(document.encode): code_versions.marking(document.encode, _environment),
    }


def _clock_patches() -> list[Patch]:
    def bits(count: int) -> int:
        return world().scheduler.random.getrandbits(count)

    return [
        (clock, "datetime", _Datetime),
        (ids, "secrets", SimpleNamespace(randbits=bits)),
        (random_draw, "secrets", SimpleNamespace(randbits=bits)),
        (ids, "uuid", SimpleNamespace(UUID=uuid.UUID, uuid4=lambda: uuid.UUID(int=bits(128), version=4))),
    ]


def _wall_ms() -> int:
    wall_ms: int = world().scheduler.now_ms + _process().skew_ms + world().wall_step_ms
    return wall_ms


def _nanoseconds() -> int:
    return int(_wall_ms()) * 1_000_000


def _monotonic_seconds() -> float:
    return world().scheduler.now_ms / 1000


def _is_cached_per_environment(value: Any) -> bool:
    """Whether this is a `functools.cache` of a composition root or handler, not a cache of a pure function."""
    return (
        isinstance(value, functools._lru_cache_wrapper)
        and value.cache_parameters()["maxsize"] is None
        and value.__module__ not in {clients.__name__, outcome_log.__name__}
        and value.__name__ != _CACHED_ONCE
    )


def _call(client: BaseClient, operation: str, request: Mapping[str, Any]) -> Any:
    return world().sdk.call(client, operation, request)


@functools.cache
def client(service: str) -> Any:
    """A real boto3 client, of which only `_make_api_call` is replaced."""
    return boto3.client(
        service,  # type: ignore[call-overload]  # any service
        region_name="eu-west-1",
        aws_access_key_id="simulated",
        aws_secret_access_key="simulated",
        config=clients.CONFIG,
    )


class _ToCloudWatch(EngineLog):
    """Passes each line to the simulated CloudWatch when it is written."""

    def emit(self, record: logging.LogRecord) -> None:
        if _process().alive:
            world().cloudwatch.put_line(_process().name, record.getMessage(), vars(record))


class _Datetime:
    """The part of `datetime` that the clock module uses."""

    @staticmethod
    def now(zone: tzinfo | None = None) -> datetime:
        return (_EPOCH + timedelta(milliseconds=_wall_ms())).astimezone(zone)


class _Environ(MutableMapping[str, str]):
    """`os.environ` and `os.environb` of the current process."""

    @property
    def _data(self) -> dict[str, str]:
        data: dict[str, str] = _process().environment
        return data

    def __setitem__(self, name: str, value: str) -> None:
        self._data[name] = value

    def __delitem__(self, name: str) -> None:
        del self._data[name]

    def __getitem__(self, name: str) -> str:
        value: str = _process().environment[name]
        return value

    def __iter__(self) -> Iterator[str]:
        return iter(_process().environment)

    def __len__(self) -> int:
        return len(_process().environment)


class _CachedPerEnvironment:
    """`functools.cache` for one execution environment."""

    def __init__(self, make: Callable[..., Any]) -> None:
        self._make = make
        functools.update_wrapper(self, make)

    def __call__(self, *arguments: Any) -> Any:
        built: dict[Any, Any] = _process().built
        name = (self._make, arguments)
        if name not in built:
            built[name] = self._make(*arguments)
        return built[name]
