"""The boundary to AWS in a story: each call is written down, takes no time, and may have a mishap."""

from collections.abc import Mapping
from contextlib import suppress
from enum import StrEnum
from typing import Any, NoReturn

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


#: By function and operation, what happens to the next tries.
Mishaps = dict[tuple[str, str], list[Mishap]]


class RecordedSdk(Sdk):
    """As `Sdk`."""

    def __init__(self, record: Record, mishaps: Mishaps, *given: Any) -> None:
        super().__init__(*given)
        self._record = record
        self._mishaps = mishaps

    def call(self, client: BaseClient, operation: str, request: Mapping[str, Any]) -> Answer:
        who = function_of(self._task.process.name)
        if self._task.process.alive:
            self._record.note(who, operation, request_of(request))
        try:
            return super().call(client, operation, request)
        except ClientError as error:
            self._record.note(who, f"is refused: {error.response['Error']['Code']}")
            raise

    def _tried(self, client: BaseClient, service: str, operation: str, request: Any, *, unanswered: bool) -> Answer:
        who = function_of(self._task.process.name)
        planned = self._mishaps.get((who, operation))
        if not planned:
            return super()._tried(client, service, operation, request, unanswered=unanswered)
        mishap = planned.pop()
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
