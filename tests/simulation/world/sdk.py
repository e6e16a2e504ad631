"""The boundary to AWS: every call that a boto3 client makes inside the world ends here.

This replaces `BaseClient._make_api_call`, so our code uses the real clients. It repeats the standard retry mode of
botocore by hand, since the protocol must tolerate a lost response and its retry.

A call has two transfers, the request and the response. Other tasks run during each, and the process can die in either.
https://docs.aws.amazon.com/sdkref/latest/guide/feature-retry-behavior.html
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cache, partial
from typing import Any, Final

from botocore.client import BaseClient
from botocore.exceptions import ConnectTimeoutError, ReadTimeoutError

from tests.simulation.world.errors import ServiceError
from tests.simulation.world.faults import Fault, Faults
from tests.simulation.world.task_scheduler import Killed, Process, Scheduler
from tests.simulation.world.trace import Trace

Answer = dict[str, Any]

#: Errors that the standard mode of botocore retries, beside network errors and server errors.
#: https://github.com/boto/botocore/blob/develop/botocore/retries/standard.py
RETRYABLE: Final = frozenset(
    {
        "ProvisionedThroughputExceededException",
        "RequestThrottled",
        "Throttling",
        "ThrottlingException",
        "TransactionInProgressException",
    }
)
_SERVER_ERROR: Final = 500
#: A request of these that the network holds up takes effect after the SDK has sent it again.
_HELD_UP: Final = frozenset({"PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems"})
_LONGEST_HELD_UP_MS: Final = 5_000
_NOT_ENCODED: Final = (AttributeError, LookupError, TypeError, ValueError)
#: The retry of a call may meet it although the first try was applied, so it says nothing about that.
_CONFLICT: Final = "TransactionConflictException"
_LONGEST_BACKOFF_SECONDS: Final = 20
#: The URL of every service in network errors.
URL: Final = "https://simulated.invalid"
#: Latency of one transfer. The slowest is still within the timeout of the client.
_LATENCY_MS: Final = (1, 8)
_SLOW_MS: Final = (50, 900)
_CALL_FAULTS: Final = (Fault.NOT_SENT, Fault.ANSWER_LOST, Fault.HELD_UP, Fault.THROTTLED, Fault.SERVER_ERROR)
_UNANSWERED_FAULTS: Final = (Fault.NOT_SENT, Fault.ANSWER_LOST)
#: Throttling error of each service: code and HTTP status.
_THROTTLES: Final = {
    "dynamodb": ("ThrottlingException", 400),
    "sqs": ("RequestThrottled", 403),
    "s3": ("SlowDown", 503),
}
_THROTTLE: Final = ("Throttling", 400)
LONGEST_OUTAGE_MS: Final = 400_000


class Sdk:
    """Makes calls for the tasks of one world. `services` maps a service to objects with a method for each operation."""

    def __init__(self, scheduler: Scheduler, faults: Faults, trace: Trace, services: Mapping[str, list[Any]]) -> None:
        self._scheduler = scheduler
        self._faults = faults
        self._trace = trace
        self._services = services
        self._out_until_ms: dict[str, int] = {}
        #: By service, the beginning and the planned end of each outage.
        self._outages_ms: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)
        self.calls = 0
        #: Called in the task of a call, when it begins and when AWS has accepted or refused it.
        self.begin_watchers: list[Callable[[], None]] = []
        self.answer_watchers: list[Callable[[], None]] = []
        #: By process, the number of calls that failed after all retries with a service or network error.
        self.gave_up: Counter[str] = Counter()
        #: The same by process and operation.
        self.gave_up_on: Counter[tuple[str, str]] = Counter()

    def call(self, client: BaseClient, operation: str, request: Mapping[str, Any]) -> Answer:
        """Make a call, in the place of `_make_api_call`."""
        config: Any = client.meta.config
        service = client.meta.service_model.service_name
        tries: int = config.retries["total_max_attempts"] if config.retries else 1
        _notify(self.begin_watchers)
        unanswered = self._faults.occurs(Fault.UNANSWERED)
        for attempt in range(tries):
            try:
                answer = self._tried(client, service, operation, request, unanswered=unanswered)
            except (ConnectTimeoutError, ReadTimeoutError):
                if attempt == tries - 1:
                    self._give_up(operation)
                    raise
            except ServiceError as error:
                passing = error.code in RETRYABLE or error.status >= _SERVER_ERROR
                if not passing or attempt == tries - 1:
                    if passing:
                        self._give_up(operation)
                    elif error.code != _CONFLICT:
                        _notify(self.answer_watchers)
                    raise _client_error(client, error, operation) from None
            else:
                _notify(self.answer_watchers)
                return answer
            pause_seconds = min(self._scheduler.random.random() * 2**attempt, _LONGEST_BACKOFF_SECONDS)
            self._scheduler.sleep(round(pause_seconds * 1000))
        raise AssertionError("the last try raises or returns")

    def _tried(
        self, client: BaseClient, service: str, operation: str, request: Mapping[str, Any], *, unanswered: bool
    ) -> Answer:
        config: Any = client.meta.config
        self.calls += 1
        self._may_be_killed(Fault.KILLED_BEFORE, operation)
        self._scheduler.sleep(self._latency_ms())
        if self._is_out(service):
            raise ServiceError("InternalServerError", "try again", status=_SERVER_ERROR)
        fault = self._scheduler.random.choice(_UNANSWERED_FAULTS) if unanswered else self._faults.one_of(_CALL_FAULTS)
        if fault:
            self._log(f"{operation}: {fault}")
            self._fail_unapplied(fault, config, service, operation, request)
        answer: Answer | ServiceError
        try:
            answer = self._operation(service, operation)(request)
        except ServiceError as refused:
            answer = refused
        self._may_be_killed(Fault.KILLED_AFTER, operation)
        if fault is Fault.ANSWER_LOST:
            self._scheduler.sleep(round(config.read_timeout * 1000))
            raise ReadTimeoutError(endpoint_url=URL)
        self._scheduler.sleep(self._latency_ms())
        if isinstance(answer, ServiceError):
            raise answer
        return answer | {"ResponseMetadata": {"HTTPStatusCode": 200, "RetryAttempts": 0}}

    def _fail_unapplied(
        self, fault: Fault, config: Any, service: str, operation: str, request: Mapping[str, Any]
    ) -> None:
        """Raise the error of a fault that leaves the call without an effect, or without one at present."""
        if fault is Fault.NOT_SENT:
            self._scheduler.sleep(round(config.connect_timeout * 1000))
            raise ConnectTimeoutError(endpoint_url=URL)
        if fault is Fault.HELD_UP:
            timeout_ms = round(config.read_timeout * 1000)
            if operation in _HELD_UP:
                later_ms = timeout_ms + self._scheduler.random.randint(0, _LONGEST_HELD_UP_MS)
                self._scheduler.spawn(
                    self._network(), partial(self._arrive, service, operation, request), delay_ms=later_ms
                )
            self._scheduler.sleep(timeout_ms)
            raise ReadTimeoutError(endpoint_url=URL)
        if fault is Fault.THROTTLED:
            raise throttling(service)
        if fault is Fault.SERVER_ERROR:
            raise ServiceError("InternalServerError", "try again", status=_SERVER_ERROR)

    def _network(self) -> Process:
        """It has what it got from the process that sends. The request arrives also if that one has died."""
        task = self._scheduler.current
        if task is None:
            raise AssertionError("only a task makes a call")
        sender = task.process
        return Process(sender.name, environment=sender.environment, skew_ms=sender.skew_ms)

    def _arrive(self, service: str, operation: str, request: Mapping[str, Any]) -> None:
        """Its sender waits for no answer any more."""
        # A transaction may have what a handler wrote, and no SDK can encode and send.
        unsent = _NOT_ENCODED if operation == "TransactWriteItems" else ()
        with suppress(ServiceError, ReadTimeoutError, *unsent):
            self._operation(service, operation)(request)

    def _operation(self, service: str, operation: str) -> Callable[[Mapping[str, Any]], Answer]:
        name = _snake(operation)
        for part in self._services.get(service, ()):
            if found := getattr(part, name, None):
                return found  # type: ignore[no-any-return]
        raise NotImplementedError(f"the simulated AWS has no {service}.{operation}")

    def _may_be_killed(self, fault: Fault, operation: str) -> None:
        process = self._scheduler.current.process if self._scheduler.current else None
        if process is None or not process.alive:
            raise Killed
        if self._faults.occurs(fault):
            self._log(f"*{fault}: {operation}")
            self._scheduler.kill(process)
            raise Killed

    def was_out(self, service: str, at_ms: int) -> bool:
        return any(begin <= at_ms < end for begin, end in self._outages_ms[service])

    def _is_out(self, service: str) -> bool:
        """Whether the whole service is unavailable."""
        if self._faults.occurs(Fault.SERVICE_OUTAGE):
            outage_ms = self._scheduler.random.randint(1_000, LONGEST_OUTAGE_MS)
            self._out_until_ms[service] = self._scheduler.now_ms + outage_ms
            self._outages_ms[service].append((self._scheduler.now_ms, self._out_until_ms[service]))
            self._trace.log(self._scheduler.now_ms, service, f"*is out for {outage_ms} ms")
        return not self._faults.stopped and self._scheduler.now_ms < self._out_until_ms.get(service, 0)

    def _give_up(self, operation: str) -> None:
        if self._scheduler.current:
            process = self._scheduler.current.process.name
            self.gave_up[process] += 1
            self.gave_up_on[process, operation] += 1

    def _latency_ms(self) -> int:
        if self._faults.occurs(Fault.SLOW_CALL):
            return self._scheduler.random.randint(*_SLOW_MS)
        return self._scheduler.random.randint(*_LATENCY_MS)

    def _log(self, what: str) -> None:
        if self._scheduler.current:
            self._trace.log(self._scheduler.now_ms, self._scheduler.current.process.name, what)


def throttling(service: str) -> ServiceError:
    """Return the answer of the service to a call that it throttles."""
    code, status = _THROTTLES.get(service, _THROTTLE)
    return ServiceError(code, "Rate exceeded", status=status)


def _notify(watchers: Iterable[Callable[[], None]]) -> None:
    for watch in watchers:
        watch()


def _client_error(client: BaseClient, error: ServiceError, operation: str) -> Exception:
    response = {
        "Error": {"Code": error.code, "Message": error.message},
        "ResponseMetadata": {"HTTPStatusCode": error.status, "RetryAttempts": 0},
        **error.more,
    }
    made: Any = client.exceptions.from_code(error.code)
    failed: Exception = made(response, operation)
    return failed


@cache
def _snake(operation: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", operation).lower()
