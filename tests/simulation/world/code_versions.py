"""Two versions of the code at once, as while it is deployed: which of them a process runs, and from when on.

Nothing updates a whole app at one moment: each function changes over by itself, in any order, whoever runs our code
elsewhere does so when they please, and what goes wrong is rolled back. An invocation ends with the code that it began
with. https://docs.aws.amazon.com/lambda/latest/dg/functions-states.html

The next version is this very code but for what `Code` says. It is in the environment of a process which version it
runs, so that nothing has to be switched when another process has its turn.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from types import ModuleType, SimpleNamespace
from typing import Any, Final

from tests.simulation.world.faults import Fault, Faults
from tests.simulation.world.task_scheduler import Scheduler
from tidemill import composition
from tidemill.application.job_types import JobType, JobTypes
from tidemill.domain.errors import UnknownJobTypeError
from tidemill.dynamodb.document import SCHEMA_VERSION
from tidemill.names import Env
from tidemill.sqs import messages
from tidemill.system import job_type_loader

#: What the next version writes into its documents, and this one knows nothing of.
MARK: Final = "mark_of_next"

#: Whoever deploys has the next version before any function.
FIRST: Final = "ada"

_SCHEMA: Final = "SCHEMA_VERSION"
_DOCUMENTS_AHEAD: Final = "SIMULATED_DOCUMENTS_AHEAD"
_MESSAGES_AHEAD: Final = "SIMULATED_MESSAGES_AHEAD"
_MARKS: Final = "SIMULATED_MARKS"
#: Most deployments leave the schemas as they are.
_AHEAD: Final = ((0, 0), (1, 0), (1, 0), (0, 1), (1, 1))
#: How long a deployment takes, and after how long it is rolled back, at most.
_TAKES_MS: Final = (5_000, 60_000, 900_000)
_BACK_WITHIN_MS: Final = (60_000, 600_000, 3_600_000)


@dataclass(frozen=True, slots=True)
class Code:
    """A version of the code."""

    name: str
    #: What the environment of a process that runs it holds besides: by how much its schemas are ahead, and its types.
    environment: Mapping[str, str]

    @property
    def job_types(self) -> JobTypes:
        return _loaded(self.environment[Env.JOB_PACKAGES])

    @property
    def document_schema(self) -> int:
        return SCHEMA_VERSION + int(self.environment.get(_DOCUMENTS_AHEAD, 0))


def _packages(*names: str) -> dict[str, str]:
    return {Env.JOB_PACKAGES: ",".join(f"tests.simulation.{name}" for name in names)}


PRESENT: Final = Code("present", _packages("jobs", "jobs_present"))


def next_code(documents_ahead: int, messages_ahead: int) -> Code:
    ahead = {_DOCUMENTS_AHEAD: str(documents_ahead), _MESSAGES_AHEAD: str(messages_ahead), _MARKS: "true"}
    return Code("next", _packages("jobs", "jobs_next") | ahead)


class Rollout:
    """When each function and each person of one world takes up which version."""

    def __init__(self, scheduler: Scheduler, faults: Faults) -> None:
        self._scheduler = scheduler
        self._faults = faults
        self._next: Code | None = None
        self._begins_ms = 0
        #: Jobs are submitted for as long; 0 without a deployment.
        self.takes_ms = 0
        self._back_ms: int | None = None
        #: Whether all went back to this version for a while, and documents of the next were there to stay.
        self.rolled_back = False
        #: When each goes forward, and when back if it does.
        self._moments: dict[str, tuple[int, int | None]] = {}
        #: The versions that all have had for as long as a seed is quiet. What they refuse is refused for good.
        self.final_versions: list[Code] = [PRESENT]

    @property
    def planned(self) -> bool:
        return self._next is not None

    def plan(self, until_ms: int) -> None:
        """Draw whether there is a deployment, and whether it is rolled back."""
        random, now_ms = self._scheduler.random, self._scheduler.now_ms
        if not self._faults.draws(Fault.DEPLOYED):
            return
        self._next = next_code(*random.choice(_AHEAD))
        self.takes_ms = random.choice(_TAKES_MS)
        self._begins_ms = now_ms + random.randint(0, min(self.takes_ms // 2, until_ms - now_ms))
        if self._faults.draws(Fault.ROLLED_BACK):
            self._back_ms = self._begins_ms + random.randint(0, random.choice(_BACK_WITHIN_MS))
            self.rolled_back = True
        self.final_versions = [PRESENT if self.rolled_back else self._next]

    def deploy_again(self) -> None:
        """What was rolled back is deployed once more, and stays."""
        if self._next is not None:
            self._begins_ms, self._back_ms = self._scheduler.now_ms, None
            self._moments.clear()
            self.final_versions.append(self._next)

    def ends_ms(self) -> int:
        """When all have the version that they keep."""
        return (self._back_ms or self._begins_ms) + self.takes_ms

    def code(self, name: str) -> Code:
        """What runs under this name when it begins now."""
        if self._next is None:
            return PRESENT
        forward_ms, back_ms = self._moments.get(name) or self._drawn(name)
        now_ms = self._scheduler.now_ms
        if now_ms < forward_ms:
            return PRESENT
        if back_ms is not None and back_ms <= now_ms:
            # One that had not gone forward by then has nothing to go back to.
            self._faults.count(Fault.ROLLED_BACK)
            return PRESENT
        self._faults.count(Fault.DEPLOYED)
        return self._next

    def _drawn(self, name: str) -> tuple[int, int | None]:
        random = self._scheduler.random
        forward_ms = self._begins_ms + (0 if name == FIRST else random.randint(0, self.takes_ms))
        back_ms = None if self._back_ms is None else self._back_ms + random.randint(0, self.takes_ms)
        return self._moments.setdefault(name, (forward_ms, back_ms))


def job_type(name: str) -> JobType:
    """As either version has it. Raises `UnknownJobTypeError`."""
    with suppress(UnknownJobTypeError):
        return PRESENT.job_types.get(name)
    return next_code(0, 0).job_types.get(name)


@cache
def _loaded(packages: str) -> JobTypes:
    """Made once for all, since making them takes longer than a seed."""
    return job_type_loader.load(packages.split(","))


@dataclass(frozen=True, slots=True)
class _Schema:
    """The number of a schema, which is another in the next version. `newer` is told when it has met a newer one."""

    present: int
    ahead: str
    environment: Callable[[], Mapping[str, str]]
    newer: Callable[[], None]

    def __int__(self) -> int:
        return self.present + int(self.environment().get(self.ahead, 0))

    def __str__(self) -> str:
        return str(int(self))

    def __lt__(self, found: int) -> bool:
        """`found > SCHEMA_VERSION` asks so."""
        if newer := int(self) < found:
            self.newer()
        return newer


def patches(
    modules: Iterable[ModuleType], environment: Callable[[], Mapping[str, str]], count: Callable[[Fault], None]
) -> list[tuple[Any, str, Any]]:
    """What must be in place of what, so that each process has the numbers and the types of its version."""

    def schema(module: ModuleType) -> _Schema:
        of_messages = module is messages
        ahead = _MESSAGES_AHEAD if of_messages else _DOCUMENTS_AHEAD
        met = Fault.NEWER_MESSAGE if of_messages else Fault.NEWER_DOCUMENT
        return _Schema(getattr(module, _SCHEMA), ahead, environment, partial(count, met))

    return [
        *((module, _SCHEMA, schema(module)) for module in modules if hasattr(module, _SCHEMA)),
        # Only an `int` is written as one.
        (messages, "json", SimpleNamespace(loads=json.loads, dumps=partial(json.dumps, default=int))),
        (composition, "known_job_types", lambda: _loaded(environment()[Env.JOB_PACKAGES])),
    ]


def marking(
    encode: Callable[[Any], dict[str, Any]], environment: Callable[[], Mapping[str, str]]
) -> Callable[..., Any]:
    """`document.encode` of either version."""

    def encoded(job: Any) -> dict[str, Any]:
        return encode(job) | ({MARK: {"S": "next"}} if _MARKS in environment() else {})

    return encoded


__all__ = ["FIRST", "MARK", "PRESENT", "Code", "Rollout", "job_type", "marking", "next_code", "patches"]
