"""What a part of a document, an outcome or a policy means where it says nothing."""

from collections.abc import Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pkgutil import walk_packages
from typing import Any

from msgspec import NODEFAULT, Struct, structs

import tidemill.domain
from tidemill.domain.breakers.breaker import BreakerState
from tidemill.domain.flows.flows import OnFailure
from tidemill.domain.limits.limits import Rate

_NEVER = datetime(1970, 1, 1, tzinfo=UTC)
_NO_DEFAULT = (MISSING, NODEFAULT)
#: All others are empty: none, no, zero, no text, no items. Older documents lack them, and are read so.
_NOT_EMPTY = {
    "Adaptive.floor": 1,
    "Awaited.times": 1,
    "Breaker.called_at": _NEVER,
    "Breaker.failed_probe_created": _NEVER,
    "Breaker.outage_from": _NEVER,
    "Breaker.probe_at": _NEVER,
    "Breaker.probe_interval": timedelta(seconds=15),
    "Breaker.probe_until": _NEVER,
    "Breaker.since": _NEVER,
    "Breaker.state": BreakerState.CLOSED,
    "Breaker.window_from": _NEVER,
    "BreakerPolicy.failure_ratio": 0.5,
    "BreakerPolicy.failure_threshold": 5,
    "BreakerPolicy.probe_interval": timedelta(seconds=15),
    "BreakerPolicy.window": timedelta(seconds=10),
    "Cursor.clean": True,
    "Edge.on_failure": OnFailure.FAIL,
    "Event.version": 1,
    "Governed.minute_from": _NEVER,
    "Governed.since": _NEVER,
    "Governed.window_from": _NEVER,
    "LimitState.arrival": _NEVER,
    "LimitState.last_at": _NEVER,
    "LimitState.promised": _NEVER,
    "Look.complete": True,
    "Pause.rate": Rate(count=10, period=timedelta(seconds=1)),
    "RecordEvent.version": 1,
    "RetryPolicy.backoff_cap_seconds": 900,
    "RetryPolicy.backoff_seconds": 2,
    "RetryPolicy.max_attempts": 8,
    "RetryPolicy.max_hops": 1000,
    "RuntimeConfiguration.acts_within": timedelta(seconds=10),
    "Step.result": "null",
}


def _fields() -> Iterator[tuple[str, Any]]:
    """Yield the fields of public records: the others belong to no document."""
    for module in walk_packages(tidemill.domain.__path__, "tidemill.domain."):
        for each in vars(import_module(module.name)).values():
            if not isinstance(each, type) or each.__module__ != module.name or each.__name__.startswith("_"):
                continue
            if is_dataclass(each):
                yield from ((f"{each.__name__}.{field.name}", field) for field in fields(each))
            elif issubclass(each, Struct):
                yield from ((f"{each.__name__}.{field.name}", field) for field in structs.fields(each))


def _default(field: Any) -> Any:
    """None without a default as well."""
    if field.default_factory not in _NO_DEFAULT:
        return field.default_factory()
    return None if field.default in _NO_DEFAULT else field.default


def _holds_any(value: Any) -> bool:
    return any(structs.astuple(value)) if isinstance(value, Struct) else bool(value)


def test_what_is_left_out_is_empty_unless_it_is_listed() -> None:
    assert {name: value for name, field in _fields() if _holds_any(value := _default(field))} == _NOT_EMPTY


def test_only_what_a_message_or_a_log_has_besides_does_not_count_when_two_are_compared() -> None:
    fields_of_classes = {name: field for name, field in _fields() if isinstance(field, Field)}
    found = {name: field for name, field in fields_of_classes.items() if not (field.compare and field.repr)}

    assert {name: field.repr for name, field in found.items()} == {"Failed.cause": False, "Reference.first_run": True}
    assert not any(field.compare for field in found.values())
