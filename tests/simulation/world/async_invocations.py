"""Asynchronous invocations: Lambda keeps each event until the function succeeds or the retries are used up.

https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-error-handling.html
"""

from collections.abc import Callable
from typing import Any, Final

from tests.simulation.world.faults import Fault, Faults
from tests.simulation.world.lambda_environments import Function, FunctionError, Throttled
from tests.simulation.world.task_scheduler import Process, Scheduler
from tests.simulation.world.trace import Trace

#: "with a one-minute wait between the first two attempts, and two minutes between the second and third attempts"
_WAITS_MS: Final = (60_000, 120_000)
#: "The retry interval increases exponentially from 1 second after the first attempt to a maximum of 5 minutes."
_FIRST_INTERVAL_MS: Final = 1_000
_LONGEST_INTERVAL_MS: Final = 300_000
#: Longest time after which an event that succeeded may be delivered again.
_REPEATED_WITHIN_MS: Final = 90_000


class AsyncInvocations:
    """The event queue of one function."""

    def __init__(
        self,
        function: Function,
        *,
        retries: int,
        oldest_seconds: int,
        scheduler: Scheduler,
        faults: Faults,
        trace: Trace,
    ) -> None:
        self._function = function
        self._retries = retries
        self._oldest_ms = oldest_seconds * 1000
        self._scheduler = scheduler
        self._faults = faults
        self._trace = trace
        #: The event queue of Lambda. No fault kills it.
        self._process = Process(f"calls of {function.name}")
        self.under_way = 0
        #: Events that Lambda discarded.
        self.discarded: list[Any] = []
        #: Called with each event that the function handled, and its answer.
        self.answer_watchers: list[Callable[[Any, Any], None]] = []

    def invoke(self, event: Any) -> None:
        self.under_way += 1
        self._scheduler.spawn(self._process, lambda: self._deliver(event))

    def _deliver(self, event: Any) -> None:
        began_ms = self._scheduler.now_ms
        failures = throttles = 0
        while True:
            try:
                answer = self._function.invoke(event)
            except Throttled:
                pause_ms = min(_FIRST_INTERVAL_MS * 2**throttles, _LONGEST_INTERVAL_MS)
                throttles += 1
            else:
                if not isinstance(answer, FunctionError):
                    break
                if failures == self._retries:
                    return self._discard(event, answer.what)
                pause_ms = _WAITS_MS[failures]
                failures += 1
                self._faults.count(Fault.INVOCATION_RETRIED)
            if self._scheduler.now_ms + pause_ms - began_ms > self._oldest_ms:
                return self._discard(event, "too old")
            self._scheduler.sleep(pause_ms)
        self.under_way -= 1
        for watch in self.answer_watchers:
            watch(event, answer)
        if self._faults.occurs(Fault.INVOCATION_REPEATED):
            # "it's possible for it to receive the same event from Lambda multiple times"
            self._scheduler.after(self._scheduler.random.randint(0, _REPEATED_WITHIN_MS), self.invoke, event)
        return None

    def _discard(self, event: Any, why: str) -> None:
        self.under_way -= 1
        self.discarded.append(event)
        self._trace.log(self._scheduler.now_ms, self._process.name, f"*gives up {event}: {why}")
