"""Two versions of the code at once, as during a deployment: which version a process runs, and from when.

A deployment does not update the whole app at once. Each function changes over separately, in any order; programs
outside AWS update at a time of their own; a failed deployment is rolled back. An invocation ends with the code that it
began with. https://docs.aws.amazon.com/lambda/latest/dg/functions-states.html

The next version is the same code, except for the differences in `Code`. The environment of a process says which
version it runs, so that no switch is needed when another process runs.
"""

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Final

from tests.simulation.world.faults import Fault, Faults
from tests.simulation.world.task_scheduler import Scheduler
from tidemill import composition
from tidemill.application.job_types import JobType, JobTypes
from tidemill.domain.errors import UnknownJobTypeError
from tidemill.dynamodb.document import SCHEMA_VERSION
from tidemill.names import BATCH_PACKAGE, EVENT_PACKAGE, FLOW_PACKAGE, Env
from tidemill.sqs import messages
from tidemill.system import job_type_loader

#: An attribute that the next version writes into its documents and the present one does not know.
MARK: Final = "mark_of_next"

#: This operator deploys, and has the next version before any function.
FIRST: Final = "ada"

_ROOT: Final = str(Path(__file__).parents[3])
_SCHEMA: Final = "SCHEMA_VERSION"
_DOCUMENTS_AHEAD: Final = "SIMULATED_DOCUMENTS_AHEAD"
_MESSAGES_AHEAD: Final = "SIMULATED_MESSAGES_AHEAD"
_MARKS: Final = "SIMULATED_MARKS"
#: Most deployments leave the schemas as they are.
_AHEAD: Final = ((0, 0), (1, 0), (1, 0), (0, 1), (1, 1))
#: Possible durations of a deployment, and longest times until a rollback.
_TAKES_MS: Final = (5_000, 60_000, 900_000)
_BACK_WITHIN_MS: Final = (60_000, 600_000, 3_600_000)
#: Possible times from a deployment until its broken job file is fixed.
_FIXED_WITHIN_MS: Final = (60_000, 900_000, 3_600_000)


@dataclass(frozen=True, slots=True)
class Code:
    """A version of the code."""

    name: str
    #: Its environment variables: how far its schemas are ahead, its job types, and its number of index shards.
    environment: Mapping[str, str]

    @property
    def job_types(self) -> JobTypes:
        return _loaded(self.environment[Env.JOB_PACKAGES])

    @property
    def document_schema(self) -> int:
        return SCHEMA_VERSION + int(self.environment.get(_DOCUMENTS_AHEAD, 0))


def _code(name: str, *packages: str, **variables: str) -> Code:
    engine = (EVENT_PACKAGE, BATCH_PACKAGE, FLOW_PACKAGE)
    job_packages = ",".join([*(f"tests.simulation.{package}" for package in packages), *engine])
    return Code(name, {Env.CODE_VERSION: name, Env.JOB_PACKAGES: job_packages, **variables})


#: Index shards that the present and the next version write. Reads query as many as the larger number.
INDEX_SHARDS: Final = (2, 5)
PRESENT: Final = _code("present", "jobs", "jobs_present", **{Env.INDEX_SHARDS: str(min(INDEX_SHARDS))})


def next_code(documents_ahead: int, messages_ahead: int, *, broken: bool = False) -> Code:
    """With `broken`, the file that declares what is new in it cannot be imported."""
    ahead = {
        _DOCUMENTS_AHEAD: str(documents_ahead),
        _MESSAGES_AHEAD: str(messages_ahead),
        _MARKS: "true",
        Env.INDEX_SHARDS: str(max(INDEX_SHARDS)),
    }
    return _code("next", "jobs", "jobs_broken" if broken else "jobs_next", **ahead)


class Rollout:
    """When each function and program of one world changes to which version."""

    def __init__(self, scheduler: Scheduler, faults: Faults) -> None:
        self._scheduler = scheduler
        self._faults = faults
        self._next: Code | None = None
        #: What runs instead of the next version until it is fixed, if so, and from when each process is fixed.
        self._broken: Code | None = None
        self._fixed_ms = 0
        self._begins_ms = 0
        #: Duration of the deployment, during which jobs are submitted; 0 without one.
        self.takes_ms = 0
        #: When the first function goes back, if one does.
        self.back_ms: int | None = None
        #: Whether the deployment is rolled back while documents of the next version remain.
        self.rolled_back = False
        #: By name, when it changes to the next version, and when it goes back, if so.
        self._moments: dict[str, tuple[int, int | None]] = {}
        #: By name, the versions of `deploy_to`.
        self._given: dict[str, Code] = {}
        #: Versions that run everywhere after the faults. A type that one of them rejects is rejected for good.
        self.final_versions: list[Code] = [PRESENT]

    @property
    def planned(self) -> bool:
        return self._next is not None

    def plan(self, until_ms: int) -> None:
        """Draw whether the next version is deployed, and whether it is rolled back."""
        random, now_ms = self._scheduler.random, self._scheduler.now_ms
        if not self._faults.draws(Fault.DEPLOYED):
            return
        ahead = random.choice(_AHEAD)
        self._next = next_code(*ahead)
        self.takes_ms = random.choice(_TAKES_MS)
        self._begins_ms = now_ms + random.randint(0, min(self.takes_ms // 2, until_ms - now_ms))
        if self._faults.draws(Fault.JOB_FILE_BROKEN):
            self._broken = next_code(*ahead, broken=True)
            self._fixed_ms = self._begins_ms + random.choice(_FIXED_WITHIN_MS)
        if self._faults.draws(Fault.ROLLED_BACK):
            self.back_ms = self._begins_ms + random.randint(0, random.choice(_BACK_WITHIN_MS))
            self.rolled_back = True
        self.final_versions = [PRESENT if self.rolled_back else self._next]

    def deploy_to(self, names: Iterable[str], code: Code) -> None:
        """Processes of these names begin with this version from now on. The others stay as they are."""
        self._given |= dict.fromkeys(names, code)

    def deploy_again(self) -> None:
        """Deploy the rolled-back version once more, for good."""
        if self._next is not None:
            self._begins_ms, self.back_ms, self._broken = self._scheduler.now_ms, None, None
            self._moments.clear()
            self.final_versions.append(self._next)

    def ends_ms(self) -> int:
        """When every process has its final version."""
        fixed_ms = self._fixed_ms if self._broken else 0
        return max(self.back_ms or self._begins_ms, fixed_ms) + self.takes_ms

    @property
    def broken(self) -> bool:
        """Whether this deployment has a job file that cannot be imported, for a time."""
        return self._broken is not None

    def code(self, name: str) -> Code:
        """The version that a process of this name begins with now."""
        if given := self._given.get(name):
            return given
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
        # Each process is fixed as long after the fix as it came after the deployment.
        if self._broken and now_ms < self._fixed_ms + forward_ms - self._begins_ms:
            self._faults.count(Fault.JOB_FILE_BROKEN)
            return self._broken
        return self._next

    def _drawn(self, name: str) -> tuple[int, int | None]:
        random = self._scheduler.random
        forward_ms = self._begins_ms + (0 if name == FIRST else random.randint(0, self.takes_ms))
        back_ms = None if self.back_ms is None else self.back_ms + random.randint(0, self.takes_ms)
        return self._moments.setdefault(name, (forward_ms, back_ms))


def job_type(name: str) -> JobType:
    """The type in the present version, else in the next. Raises `UnknownJobTypeError`."""
    with suppress(UnknownJobTypeError):
        return PRESENT.job_types.get(name)
    return next_code(0, 0).job_types.get(name)


def types_of(environment: Mapping[str, str]) -> JobTypes:
    """The types that a process with this environment knows."""
    return _loaded(environment[Env.JOB_PACKAGES])


@cache
def _loaded(packages: str) -> JobTypes:
    """Loaded once, since loading takes longer than a seed."""
    # A fault names its file from the first root that holds it: the same one, however this process was started.
    sys.path.insert(0, _ROOT)
    try:
        return job_type_loader.load_sound(packages.split(","))
    finally:
        sys.path.remove(_ROOT)


@dataclass(frozen=True, slots=True)
class _Schema:
    """A schema number that depends on the version of the process. It calls `newer` if it meets a newer number."""

    present: int
    ahead: str
    environment: Callable[[], Mapping[str, str]]
    newer: Callable[[], None]

    def __int__(self) -> int:
        return self.present + int(self.environment().get(self.ahead, 0))

    def __str__(self) -> str:
        return str(int(self))

    def __lt__(self, found: int) -> bool:
        """Called for `found > SCHEMA_VERSION`."""
        if newer := int(self) < found:
            self.newer()
        return newer


def patches(
    modules: Iterable[ModuleType], environment: Callable[[], Mapping[str, str]], count: Callable[[Fault], None]
) -> list[tuple[Any, str, Any]]:
    """Patches that give each process the schema numbers and the job types of its version."""

    def schema(module: ModuleType) -> _Schema:
        of_messages = module is messages
        ahead = _MESSAGES_AHEAD if of_messages else _DOCUMENTS_AHEAD
        met = Fault.NEWER_MESSAGE if of_messages else Fault.NEWER_DOCUMENT
        return _Schema(getattr(module, _SCHEMA), ahead, environment, partial(count, met))

    return [
        *((module, _SCHEMA, schema(module)) for module in modules if hasattr(module, _SCHEMA)),
        # `json` writes only a real `int`.
        (messages, "json", SimpleNamespace(loads=json.loads, dumps=partial(json.dumps, default=int))),
        (composition, "known_job_types", lambda: _loaded(environment()[Env.JOB_PACKAGES])),
    ]


def marking(
    encode: Callable[[Any], dict[str, Any]], environment: Callable[[], Mapping[str, str]]
) -> Callable[..., Any]:
    """`document.encode` for both versions."""

    def encoded(job: Any) -> dict[str, Any]:
        return encode(job) | ({MARK: {"S": "next"}} if _MARKS in environment() else {})

    return encoded


__all__ = ["FIRST", "MARK", "PRESENT", "Code", "Rollout", "job_type", "marking", "next_code", "patches", "types_of"]
