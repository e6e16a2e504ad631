"""Puts the simulated world under the code that ships: its clock, chance, threads, environment and AWS.

Nothing of `shared` or `functions` is written anew or skipped. What they import from the standard library and is not
deterministic is replaced, and so is the one method through which boto3 makes a call. `functools.cache` keeps a value for
each execution environment instead of each interpreter, since here many environments live in one.
"""

import functools
import importlib
import os
import pkgutil
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from concurrent import futures
from datetime import UTC, datetime, timedelta, tzinfo
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

import boto3
from botocore.client import BaseClient

from shared.adapters import clients, clock, telemetry
from shared.application import reconcile

if TYPE_CHECKING:
    from tests.simulation.world.world import World

_ROOTS: Final = ("shared", "functions")
#: What an environment makes and never changes: made once for all, since making it takes longer than a seed.
_MADE_ONCE: Final = frozenset({"known_job_types", "logger"})
_SEGMENTS: Final = 3
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

_make_api_call: Final = BaseClient._make_api_call
_sleep: Final = time.sleep


class _Stage:
    """Which world plays."""

    world: "World | None" = None


def world() -> "World":
    if _Stage.world is None:
        raise AssertionError("no world is being simulated")
    return _Stage.world


def enter(world: "World | None") -> None:
    _Stage.world = world


def _inside() -> bool:
    return _Stage.world is not None and _Stage.world.scheduler.current is not None


def _process() -> Any:
    task = world().scheduler.current
    if task is None:
        raise AssertionError("no process runs")
    return task.process


def _call(client: BaseClient, operation: str, request: Mapping[str, Any]) -> Any:
    if not _inside():
        return _make_api_call(client, operation, request)  # type: ignore[call-arg]  # unbound
    return world().sdk.call(client, operation, request)


def _sleeping(seconds: float) -> None:
    if _inside():
        world().threads.sleep(seconds)
    else:
        _sleep(seconds)


class _Datetime:
    """`datetime`, as far as the clock adapter asks it."""

    @staticmethod
    def now(zone: tzinfo | None = None) -> datetime:
        return (_EPOCH + timedelta(milliseconds=world().scheduler.now_ms + _process().skew_ms)).astimezone(zone)


class _Environ(Mapping[str, str]):
    def __getitem__(self, name: str) -> str:
        environment: Mapping[str, str] = _process().environment if _inside() else os.environ
        return environment[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_process().environment)

    def __len__(self) -> int:
        return len(_process().environment)


class _Kept:
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

    def cache_clear(self) -> None:
        pass


def _os() -> SimpleNamespace:
    environ = _Environ()
    return SimpleNamespace(**{**vars(os), "environ": environ, "getenv": environ.get})


def _replacements() -> dict[int, Any]:
    """What stands in for what, by identity."""
    threads = SimpleNamespace(
        **{
            **vars(threading),
            "Lock": lambda: world().threads.lock() if _inside() else _lock(),
            "Event": lambda: world().threads.event() if _inside() else _event(),
        }
    )
    return {
        id(threading): threads,
        id(os): _os(),
        id(futures.ThreadPoolExecutor): lambda *given, **named: world().threads.pool(*given, **named),
        id(futures.wait): lambda *given, **named: world().threads.wait(*given, **named),
        id(futures.as_completed): lambda *given, **named: world().threads.as_completed(*given, **named),
    }


_lock: Final = threading.Lock
_event: Final = threading.Event


def modules() -> list[ModuleType]:
    """Every module that ships, imported."""
    for root in _ROOTS:
        package = importlib.import_module(root)
        for module in pkgutil.walk_packages(package.__path__, prefix=f"{root}."):
            importlib.import_module(module.name)
    return [module for name, module in sys.modules.items() if name.partition(".")[0] in _ROOTS]


@functools.cache
def install() -> None:
    """Once in an interpreter; outside a world, everything is as it was."""
    os.environ.setdefault("POWERTOOLS_LOG_LEVEL", "CRITICAL")
    os.environ.setdefault("POWERTOOLS_METRICS_DISABLED", "true")
    os.environ.setdefault("POWERTOOLS_TRACE_DISABLED", "true")
    replacements = _replacements()
    kept: dict[int, Any] = {}
    for module in modules():
        for name, value in list(vars(module).items()):
            if id(value) in replacements:
                setattr(module, name, replacements[id(value)])
            elif _is_cache(value):
                setattr(module, name, kept.setdefault(id(value), _Kept(value.__wrapped__)))
    _install_clock()
    _install_clients()
    _watch_reports()
    # A table of ten items is not read in sixty-four parts.
    reconcile.SEGMENTS = _SEGMENTS  # type: ignore[misc]
    time.sleep = _sleeping
    BaseClient._make_api_call = _call  # type: ignore[method-assign]


def _is_cache(value: Any) -> bool:
    """A `functools.cache` of the composition roots and handlers, and not a memory of pure answers."""
    return (
        isinstance(value, functools._lru_cache_wrapper)
        and value.cache_parameters()["maxsize"] is None
        and value.__module__ != clients.__name__
        and value.__name__ not in _MADE_ONCE
    )


def _install_clock() -> None:
    clock.datetime = _Datetime  # type: ignore[assignment,misc]
    clock.secrets = SimpleNamespace(randbits=lambda bits: world().scheduler.random.getrandbits(bits))  # type: ignore[assignment]
    clock.uuid = SimpleNamespace(  # type: ignore[assignment]
        UUID=uuid.UUID, uuid4=lambda: uuid.UUID(int=world().scheduler.random.getrandbits(128), version=4)
    )
    clock.time = SimpleNamespace(time_ns=lambda: (world().scheduler.now_ms + _process().skew_ms) * 1_000_000)  # type: ignore[assignment]


@functools.cache
def _client(service: str) -> Any:
    return boto3.client(
        service,  # type: ignore[call-overload]  # whichever
        region_name="eu-west-1",
        aws_access_key_id="simulated",
        aws_secret_access_key="simulated",
        config=clients._CONFIG,
    )


def _watch_reports() -> None:
    """The one place that learns what became of each message also tells the world."""
    worked = telemetry.Telemetry.worked

    def watched(self: telemetry.Telemetry, lane: Any, reference: Any, report: Any) -> None:
        if _inside():
            world().reports.append((world().scheduler.now_ms, _process().name, report))
        worked(self, lane, reference, report)

    telemetry.Telemetry.worked = watched  # type: ignore[method-assign]


def _install_clients() -> None:
    for name in ("dynamodb", "sqs", "s3", "cloudwatch", "secretsmanager"):
        attribute = "secrets" if name == "secretsmanager" else name
        if hasattr(clients, attribute):
            setattr(clients, attribute, functools.partial(_client, name))
