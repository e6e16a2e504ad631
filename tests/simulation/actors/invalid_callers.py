"""Callers whose submissions the API must refuse: each is refused with the path of its fault, and changes nothing.

The table follows the reference of the API. A tenant of its own makes these submissions, so no item may name it.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from random import Random
from typing import Any, Final

from tests.simulation.checks.violation import require, require_in_task
from tests.simulation.world.world import World
from tidemill import composition
from tidemill.domain.errors import (
    InvalidPayloadError,
    PayloadTooLargeError,
    StoreUnavailableError,
    TidemillError,
    UnknownJobTypeError,
)
from tidemill.domain.submission.submission import Submission, Unique
from tidemill.names import Lane
from tidemill.system import clock

_TENANT: Final = "111122223333:AROAEVE"
_CHECK: Final = "an invalid submission is refused"
#: Share of seeds with such a caller.
_SHARE: Final = 0.15
_SUBMISSIONS: Final = 5
_HOUR: Final = timedelta(hours=1)
_LONGEST: Final = timedelta(days=366)
_LARGEST_BYTES: Final = 256 * 1024
_NEVER: Final[Mapping[str, Any]] = {"fails": 0}


def _nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(levels - 1):
        value = {"inner": value}
    return value


def _sized(size: int) -> dict[str, Any]:
    """A payload of so many bytes."""
    return {"padding": "x" * (size - len('{"padding":""}'))}


def invalid_submissions(now: datetime) -> list[tuple[set[str], Mapping[str, Any]]]:
    """The paths of the faults, none if the submission fails as a whole, and the members beside a valid type."""
    later = now + _HOUR
    return [
        ({"/lane"}, {"lane": Lane.CRITICAL}),
        ({"/lane"}, {"type": "sim.steps", "lane": Lane.DEFAULT}),
        ({"/group"}, {"group": ""}),
        ({"/group"}, {"group": "ä" * 64 + "b"}),
        ({"/group"}, {"group": "\ud800"}),
        ({"/idempotency_key"}, {"key": ""}),
        ({"/idempotency_key"}, {"key": "k" * 513}),
        ({"/idempotency_key"}, {"type": "sim.unique", "key": "k"}),
        ({"/tags"}, {"tags": ["a", "b", "c", "d", "e", "f"]}),
        ({"/tags"}, {"tags": ["a", "a"]}),
        ({"/tags/1"}, {"tags": ["a", "x" * 33]}),
        ({"/tags/0"}, {"tags": ["A"]}),
        ({"/delay_seconds"}, {"delay": timedelta(seconds=-1)}),
        ({"/delay_seconds"}, {"delay": _LONGEST + timedelta(seconds=1)}),
        ({"/run_at"}, {"delay": _HOUR, "run_at": later}),
        ({"/run_at"}, {"run_at": now - _HOUR}),
        ({"/run_at"}, {"run_at": now + _LONGEST + _HOUR}),
        ({"/run_at"}, {"run_at": later.replace(tzinfo=None)}),
        ({"/run_at"}, {"run_at": datetime.max.replace(tzinfo=timezone(-_HOUR))}),
        ({"/deadline"}, {"deadline": later.replace(tzinfo=None)}),
        ({"/deadline"}, {"deadline": now - _HOUR}),
        ({"/deadline"}, {"deadline": later, "delay": 2 * _HOUR}),
        ({"/deadline"}, {"deadline": later, "run_at": later}),
        ({"/unique"}, {"key": "k", "unique": Unique(period=_HOUR)}),
        ({"/unique/period_seconds"}, {"unique": Unique(period=timedelta(milliseconds=999))}),
        ({"/unique/period_seconds"}, {"unique": Unique(period=_LONGEST + timedelta(seconds=1))}),
        ({"/unique/key"}, {"unique": Unique(period=_HOUR, key="")}),
        ({"/unique/key"}, {"unique": Unique(period=_HOUR, key="u" * 129)}),
        ({"/payload"}, {"payload": {"fails": float("nan")}}),
        ({"/payload"}, {"payload": {"fails": {1}}}),
        ({"/payload"}, {"payload": _nested(101)}),
        ({"/payload"}, {"payload": [1]}),
        ({"/payload/fails"}, {"payload": {"fails": "many"}}),
        ({"/group", "/payload/fails"}, {"payload": {"fails": "many"}, "group": ""}),
        ({"/lane", "/delay_seconds"}, {"lane": Lane.CRITICAL, "delay": timedelta(seconds=-1)}),
        (set(), {"type": "sim.unheard-of"}),
        (set(), {"type": "sim.unheard-of", "key": "k"}),
        (set(), {"payload": _sized(_LARGEST_BYTES + 1)}),
    ]


class InvalidCallers:
    """The caller of one world. Its own source of chance leaves all else as it is in seeds without it."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._random = Random(f"invalid callers {world.seed}")

    def plan(self, until_ms: int) -> None:
        if self._random.random() < _SHARE:
            at_ms = self._random.randint(self._world.scheduler.now_ms, until_ms)
            self._world.scheduler.at(at_ms, self._begin)

    def _begin(self) -> None:
        self._world.scheduler.spawn(self._world.process("eve"), self._submit)

    def _submit(self) -> None:
        for paths, members in self._random.sample(invalid_submissions(clock.now()), _SUBMISSIONS):
            submission = Submission(**{"type": "sim.effect", "payload": _NEVER, **members})
            try:
                accepted = composition.parts().submit(submission, tenant=_TENANT, trace="eve")
            except StoreUnavailableError:
                continue  # It asked for an earlier job of the key.
            except TidemillError as error:
                self._require(_fits(error, paths, submission), f"{error!r} for {_short(members)}")
            except Exception as error:  # noqa: BLE001 - the finding
                self._require(False, f"{error!r} for {_short(members)}")
            else:
                self._require(False, f"{accepted.job.id} was accepted for {_short(members)}")

    def at_end(self) -> None:
        """Raises `Violation`."""
        named = [key for (key,) in self._world.jobs.items if _TENANT in key]
        require(not named, _CHECK, f"it left {named}", f"{_TENANT}#")

    def _require(self, holds: bool, what: str) -> None:
        require_in_task(self._world.scheduler, holds, _CHECK, what, f"{_TENANT}#")


def _fits(error: TidemillError, paths: set[str], submission: Submission) -> bool:
    if paths:
        named = isinstance(error, InvalidPayloadError) and {fault.path for fault in error.faults} == paths
        return named and all(path in str(error) for path in paths)
    if submission.type == "sim.unheard-of":
        return isinstance(error, UnknownJobTypeError) and error.name == submission.type and "sim.effect" in error.known
    sizes = (error.size_bytes, error.limit_bytes) if isinstance(error, PayloadTooLargeError) else None
    return sizes == (_LARGEST_BYTES + 1, _LARGEST_BYTES)


def _short(members: Mapping[str, Any]) -> str:
    return repr(members)[:99]
