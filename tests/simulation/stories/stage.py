"""The world of a story: calm, and the same each time. It writes down what happens at the boundary of the engine."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from typing import Any, Final, NoReturn

from botocore.client import BaseClient
from botocore.exceptions import ClientError, ReadTimeoutError

from tests.simulation.actors.api_gateway import Answer, ask
from tests.simulation.deployment import Deployment
from tests.simulation.stories.readable import Readable, request_of
from tests.simulation.stories.steady_chance import SteadyChance
from tests.simulation.world.cloudwatch import Line
from tests.simulation.world.errors import ServiceError
from tests.simulation.world.faults import Faults
from tests.simulation.world.sdk import Sdk
from tests.simulation.world.task_scheduler import Killed, Scheduler
from tests.simulation.world.world import World
from tidemill.names import CONTINUE, WAKE_PART, WAKE_PARTS

TENANT: Final = "111122223333:AROAADA"
_LONGEST_STEP_MS: Final = 600_000
_MOST_STEPS: Final = 200_000
#: Of a log line, what Python and the logger add, or what says where it was written.
_NO_FIELDS: Final = frozenset(
    "name msg args levelname levelno pathname filename module exc_info exc_text stack_info lineno funcName created "
    "msecs relativeCreated thread threadName processName process taskName message asctime _aws stage".split()
)


class Mishap(StrEnum):
    """What happens to one call."""

    KILLED_BEFORE = "is killed before the call"
    KILLED_AFTER = "is killed after the call"
    ANSWER_LOST = "does not get the answer"
    THROTTLED = "is throttled"


class Stage:
    """The steps of a story. Each is over when its answer is there."""

    def __init__(self, world: World, record: "Record", mishaps: dict[tuple[str, str], Mishap]) -> None:
        self.world = world
        self._record = record
        self._mishaps = mishaps

    def next_call(self, function: str, operation: str, mishap: Mishap) -> None:
        """Of this function, such as `work-default`. Its retry by the SDK has none."""
        self._mishaps[function, operation] = mishap

    def post(self, path: str, body: Any = None, *, key: str | None = None, tenant: str = TENANT) -> Any:
        """Returns the body of the answer. Paths below `/jobs` with an action go to `control`."""
        return self._asked("POST", path, tenant=tenant, key=key, body=body)

    def get(self, path: str, *, tenant: str = TENANT, **query: str) -> Any:
        return self._asked("GET", path, tenant=tenant, query=query)

    def operate(self, what: str, act: Callable[[], object]) -> Any:
        """Call this with the settings of the deployment, as the command line does."""
        self._record.note("operator", what)

        def tried() -> object:
            try:
                return act()
            except Exception as error:  # noqa: BLE001 - it is part of the story
                return error

        came = self._done("operator", tried)
        self._record.note("operator", "has", came)
        return came

    def passes(self, seconds: float) -> None:
        """Let that time pass."""
        self._record.note("time", f"{seconds:g} seconds pass")
        scheduler = self.world.scheduler
        scheduler.run(until_ms=scheduler.now_ms + round(seconds * 1000), most_steps=_MOST_STEPS)

    def wakes(self) -> None:
        self._scheduled("wake", {WAKE_PART: "0", WAKE_PARTS: "1"})

    def reconciles(self, event: Mapping[str, str] | None = None) -> None:
        self._scheduled("reconcile", {CONTINUE: "true"} if event is None else event)

    def ticks(self, event: Mapping[str, str]) -> None:
        self._scheduled("tick", event)

    def _asked(self, method: str, path: str, *, tenant: str, **more: Any) -> Any:
        function = "query" if method == "GET" else "submit" if path in _SUBMITTED else "control"
        shown = {name: value for name, value in more.items() if value}
        self._record.note("caller", f"{method} {path}", shown or None)
        answer = self._done("caller", lambda: ask(self.world, function, method, path, tenant=tenant, **more))
        assert isinstance(answer, Answer)
        self._record.note("caller", f"has {answer.status}", _present(answer.body))
        return answer.body

    def _scheduled(self, verb: str, event: Mapping[str, str]) -> None:
        calls = self.world.async_invocations[verb]
        calls.invoke(event)
        self._until(lambda: not calls.under_way)

    def _done(self, who: str, act: Callable[[], Any]) -> Any:
        came: list[Any] = []
        self.world.scheduler.spawn(self.world.process(who), lambda: came.append(act()))
        self._until(lambda: bool(came))
        return came[0]

    def _until(self, over: Callable[[], bool]) -> None:
        scheduler = self.world.scheduler
        scheduler.run(until_ms=scheduler.now_ms + _LONGEST_STEP_MS, most_steps=_MOST_STEPS, over=over)
        assert over(), "the step has no answer"


class Record:
    """The lines of one story."""

    def __init__(self) -> None:
        self._readable = Readable()
        self._lines: list[str] = []

    def note(self, who: str, what: str, details: object = None) -> None:
        self._lines.append(self._readable.text(f"{who}: {what}"))
        if details is not None:
            self._lines += self._readable.lines(details)

    def line(self, line: Line) -> None:
        fields = {
            f"metric {name}" if name in line.metrics else name: value
            for name, value in line.fields.items()
            if name not in _NO_FIELDS
        }
        self.note(_function(line.by), f"logs {line.message}", fields)

    def text(self) -> str:
        return "\n".join(self._lines) + "\n"


@contextmanager
def stage() -> Iterator[tuple[Stage, Record]]:
    record, chance = Record(), SteadyChance()
    mishaps: dict[tuple[str, str], Mishap] = {}
    faults = Faults(chance)
    faults.rates = {}

    class Recorded(Sdk):
        """It notes each call, which takes no time."""

        def call(self, client: BaseClient, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
            who = self._who()
            record.note(who, operation, request_of(request))
            try:
                return super().call(client, operation, request)
            except ClientError as error:
                record.note(who, f"is refused: {error.response['Error']['Code']}")
                raise

        def _tried(self, client: BaseClient, service: str, operation: str, request: Any, **more: Any) -> dict[str, Any]:
            mishap = mishaps.pop((self._who(), operation), None)
            if mishap is None:
                return super()._tried(client, service, operation, request, **more)
            record.note(self._who(), mishap)
            if mishap is Mishap.KILLED_BEFORE:
                self._kill()
            if mishap is Mishap.THROTTLED:
                raise ServiceError("ThrottlingException", "Rate exceeded")
            answer = super()._tried(client, service, operation, request, **more)
            if mishap is Mishap.KILLED_AFTER:
                self._kill()
            if mishap is Mishap.ANSWER_LOST:
                raise ReadTimeoutError(endpoint_url="https://simulated.invalid")
            return answer

        def _kill(self) -> NoReturn:
            task = self._scheduler.current
            assert task
            self._scheduler.kill(task.process)
            raise Killed

        def _who(self) -> str:
            task = self._scheduler.current
            return _function(task.process.name) if task else "?"

        def _latency_ms(self) -> int:
            return 0

    with World(1, Deployment(varied=False), scheduler=Scheduler(chance), faults=faults, sdk=Recorded) as world:
        world.cloudwatch.line_watchers.append(record.line)
        yield Stage(world, record, mishaps), record


_SUBMITTED: Final = ("/jobs", "/jobs/batch", "/events", "/flows", "/batches")


def _function(process: str) -> str:
    """Without the number of its environment."""
    return process.rpartition(" ")[0] or process


def _present(body: Any) -> Any:
    """The members that have a value."""
    if isinstance(body, list):
        return [_present(each) for each in body]
    if not isinstance(body, dict):
        return body
    return {name: _present(each) for name, each in body.items() if each not in (None, [], {})}
