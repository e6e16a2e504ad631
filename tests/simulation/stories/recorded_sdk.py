"""The boundary to AWS in a story: each call is written down, takes no time, and may have a mishap."""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, NoReturn

from botocore.client import BaseClient
from botocore.exceptions import ClientError, ReadTimeoutError

from tests.simulation.stories.readable import request_of
from tests.simulation.stories.record import Record, function_of
from tests.simulation.world.errors import ServiceError
from tests.simulation.world.sdk import URL, Answer, Sdk, throttling
from tests.simulation.world.task_scheduler import Killed, Task


class Mishap(StrEnum):
    """What happens to one call."""

    KILLED_BEFORE = "is killed before the call"
    KILLED_AFTER = "is killed after the call"
    ANSWER_LOST = "does not get the answer"
    THROTTLED = "is throttled"


_WRITES: Final = frozenset(("BatchExecuteStatement", "DeleteItem", "PutItem", "TransactWriteItems", "UpdateItem"))


@dataclass(slots=True)
class Mishaps:
    """What happens to calls."""

    #: To the next tries, by function and operation. The last comes first.
    planned: dict[tuple[str, str], list[Mishap]] = field(default_factory=dict)
    #: The first answer to each write of an item is lost, so the SDK sends each write twice.
    writes_sent_twice: bool = False


class RecordedSdk(Sdk):
    """An `Sdk` that records its calls."""

    def __init__(self, record: Record, mishaps: Mishaps, *given: Any) -> None:
        super().__init__(*given)
        self._record = record
        self._mishaps = mishaps
        self._first_tries: set[Task] = set()

    def call(self, client: BaseClient, operation: str, request: Mapping[str, Any]) -> Answer:
        who = function_of(self._task.process.name)
        if self._task.process.alive:
            self._record.note(who, operation, request_of(request))
        if self._mishaps.writes_sent_twice and operation in _WRITES:
            self._first_tries.add(self._task)
        try:
            return super().call(client, operation, request)
        except ClientError as error:
            self._record.note(who, f"is refused: {error.response['Error']['Code']}")
            raise
        finally:
            self._first_tries.discard(self._task)

    def _tried(self, client: BaseClient, service: str, operation: str, request: Any, *, unanswered: bool) -> Answer:
        who = function_of(self._task.process.name)
        planned = self._mishaps.planned.get((who, operation))
        if planned:
            mishap = planned.pop()
        elif self._task in self._first_tries:
            self._first_tries.remove(self._task)
            mishap = Mishap.ANSWER_LOST
        else:
            return super()._tried(client, service, operation, request, unanswered=unanswered)
        self._record.note(who, mishap)
        if mishap is Mishap.KILLED_BEFORE:
            self._kill()
        if mishap is Mishap.THROTTLED:
            raise throttling(service)
        with suppress(ServiceError):
            super()._tried(client, service, operation, request, unanswered=unanswered)
        if mishap is Mishap.KILLED_AFTER:
            self._kill()
        raise ReadTimeoutError(endpoint_url=URL)

    def _kill(self) -> NoReturn:
        self._scheduler.kill(self._task.process)
        raise Killed

    @property
    def _task(self) -> Task:
        task = self._scheduler.current
        assert task
        return task

    def _latency_ms(self) -> int:
        return 0
