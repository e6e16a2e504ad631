"""Checks of a job type's declaration. A wrong one fails where it stands, before any deployment.

Each check raises `DeclarationError` from inside the decorator, so that the loader can name the file and line.
"""

import inspect
from collections.abc import Callable, Iterable
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from tidemill.application.attempt.result_types import not_json, returned_type
from tidemill.domain import option_values
from tidemill.domain.attempt.retry import LEAST_GROUPED_ATTEMPTS
from tidemill.domain.errors import DeclarationError
from tidemill.domain.events.events import FIRST_VERSION
from tidemill.domain.time_constants import MILLISECOND
from tidemill.names import BUILT_IN_PREFIX

if TYPE_CHECKING:
    from pydantic import BaseModel

Value = TypeVar("Value")


def require_name(name: object) -> None:
    _declared(option_values.type_name, name)


def require_app_name(name: str) -> None:
    """The command line and the counts treat the types of the prefix as those of the engine."""
    require_name(name)
    if name.startswith(BUILT_IN_PREFIX):
        raise DeclarationError(
            f"the name of the job type is {name!r}; names with {BUILT_IN_PREFIX!r} are those of built-in types: "
            "begin it with another word"
        )


def require_downstream(name: object) -> None:
    _declared(option_values.downstream_name, name)


def require_limit_name(name: object) -> None:
    _declared(option_values.limit_name, name)


def require_event_name(name: object) -> None:
    _declared(option_values.event_name, name)


def require_model(payload: object, *, option: str = "payload") -> None:
    from pydantic import BaseModel  # noqa: PLC0415 - `payload_model` says why

    if not (isinstance(payload, type) and issubclass(payload, BaseModel)):
        raise DeclarationError(f"{option} is {payload!r}; it must be a subclass of pydantic.BaseModel")


def require_empty_payload(payload: "type[BaseModel]") -> None:
    """The scheduler submits `{}`."""
    from pydantic import ValidationError  # noqa: PLC0415 - as in `require_model`

    try:
        payload.model_validate_json("{}")
    except ValidationError as error:
        missing = ", ".join(".".join(map(str, fault["loc"])) for fault in error.errors())
        raise DeclarationError(
            f"the scheduler submits an empty payload, and {payload.__name__} refuses it: give a default to {missing}"
        ) from None


def require_schedule(schedule: object) -> None:
    """None is allowed: it leaves the option out."""
    require_instance("schedule", schedule, str)
    if schedule is not None:
        from tidemill.domain.waiting import schedule_times  # noqa: PLC0415 - most types have no schedule

        _declared(schedule_times.parse, schedule)


def require_one_of(name: str, value: object, choices: Iterable[str]) -> None:
    if value not in tuple(choices):
        listed = ", ".join(repr(str(choice)) for choice in choices)
        raise DeclarationError(f"{name} is {value!r}; it must be one of {listed}")


def require_whole_numbers(**options: object) -> None:
    """None is allowed: it leaves the option out."""
    for name, value in options.items():
        if value is not None:
            _declared(option_values.whole, name, value)


def require_version(version: object) -> None:
    require_whole_numbers(version=version)
    if not isinstance(version, int) or version < FIRST_VERSION:
        raise DeclarationError(f"version is {version!r}; it must be at least {FIRST_VERSION}")


def require_number(**options: object) -> None:
    """None is allowed: it leaves the option out."""
    for name, value in options.items():
        if value is not None:
            _declared(option_values.number, name, value)


def require_commit(commit: str, *, max_attempts: int, limited: bool, schedule: str | None, on_dead: str) -> None:
    require_one_of("commit", commit, ("single", "grouped"))
    if commit == "single":
        return
    if max_attempts < LEAST_GROUPED_ATTEMPTS:
        raise DeclarationError(
            f"commit is 'grouped' and max_attempts is {max_attempts}; it must be at least {LEAST_GROUPED_ATTEMPTS}, "
            "because a worker that dies uses up an attempt of each job of its batch"
        )
    if limited:
        raise DeclarationError("commit is 'grouped', and a limit needs calls for each run: remove one of the two")
    if schedule is not None:
        raise DeclarationError("commit is 'grouped', and a schedule submits one job at a time: remove commit")
    if on_dead == "block":
        raise DeclarationError("commit is 'grouped', and only jobs of a group can block: remove on_dead or commit")


def require_flag(**options: object) -> None:
    for name, value in options.items():
        if not isinstance(value, bool):
            raise DeclarationError(f"{name} is {value!r}; it must be True or False")


def require_instance(name: str, value: object, kind: type) -> None:
    """None is allowed: it leaves the option out."""
    if value is not None and not isinstance(value, kind):
        raise DeclarationError(f"{name} is {value!r}; it must be a {kind.__name__}")


def require_callable(name: str, function: object, *arguments: str) -> None:
    """A function that one may call with exactly these arguments, by position. The worker awaits nothing."""
    if not callable(function):
        raise DeclarationError(f"{name} is {function!r}; it must be a function")
    # An object is called by the method of its class.
    bodies = (function, type(function).__call__)
    if any(inspect.iscoroutinefunction(body) or inspect.isasyncgenfunction(body) for body in bodies):
        raise DeclarationError(f"{_named(name, function)} is declared with `async def`; declare it with `def`")
    if any(inspect.isgeneratorfunction(body) for body in bodies):
        raise DeclarationError(
            f"{_named(name, function)} uses `yield`, so a call would run nothing; return a value instead"
        )
    called = f"({', '.join(arguments)})"
    try:
        signature = inspect.signature(function)
    except ValueError:
        raise DeclarationError(
            f"{_named(name, function)} is built in, and Python does not say how to call it: call it in a function of "
            f"{called}"
        ) from None
    try:
        signature.bind(*arguments)
    except TypeError as error:
        raise DeclarationError(f"{_named(name, function)} cannot be called with {called}: {error}") from None


def require_json(name: str, handler: Callable[..., Any]) -> None:
    """The result of a job is JSON. A worker would refuse any other only after the effect of the handler."""
    if why := not_json(returned_type(handler)):
        raise DeclarationError(f"the handler of {name!r} returns {why}; return JSON, such as `model_dump(mode='json')`")


def duration(name: str, value: float | None, unit: timedelta, *, shortest: timedelta = MILLISECOND) -> timedelta | None:
    """`value` units, at least `shortest` and at most `LONGEST_SPAN`."""
    return None if value is None else _declared(partial(option_values.span, shortest=shortest), name, value, unit)


def _declared(rule: Callable[..., Value], *arguments: object) -> Value:
    try:
        return rule(*arguments)
    except ValueError as error:
        raise DeclarationError(str(error)) from None


def _named(name: str, function: Callable[..., Any]) -> str:
    own = getattr(function, "__name__", "")
    return f"{name} `{own}`" if own else name
