"""The simulated Lambda: environments are created, reused with their globals, frozen between invocations and killed.

https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html

A real process can die anywhere in its own Python, for example when it runs out of memory. The simulator kills it only
where a thread waits: in a call, a pause, or for another thread. The two are equivalent. Between two such places code
reads and writes only the memory of its process, which dies with it. Documents, messages and other processes are the
same as if it had died before the next call, and no time passes in between. With several threads each one is at such a
place at every moment, one in a call that was applied, another before its first. So a kill at any moment can leave
behind every possible mixture.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from tests.simulation.world.code_versions import PRESENT, Rollout
from tests.simulation.world.faults import Fault, Faults
from tests.simulation.world.task_scheduler import Killed, Process, Scheduler
from tests.simulation.world.trace import Trace

#: Two clocks may differ by twice this skew. A lease allows for that.
LARGEST_SKEW_MS: Final = 1000
#: With such clocks two workers may run one job at once. Their writes must be correct nevertheless.
FAR_OFF_MS: Final = 40_000
#: Lambda ends each invocation by then.
LONGEST_INVOCATION_MS: Final = 15 * 60_000
#: Beginning of the trace line for an exception of a handler.
RAISED: Final = "*raised "
COLD_START_MS: Final = (200, 900)
#: Possible times until an invocation runs out of memory: most are short, some as long as the invocation.
_MEMORY_FULL_WITHIN_MS: Final = (30, 300, 3_000, 30_000)


class Throttled(Exception):  # noqa: N818 - the name that Lambda uses
    """The invocation did not begin."""


@dataclass(slots=True)
class FunctionError:
    """An invocation without a response: it raised, was killed or timed out."""

    what: str
    #: The process, if it ended itself.
    exited: Process | None = None
    #: Whether its process was killed.
    killed: bool = False


class Context:
    """The context of an invocation. The remaining time does not depend on a skewed clock."""

    def __init__(self, scheduler: Scheduler, name: str, ends_ms: int) -> None:
        self._scheduler = scheduler
        self._ends_ms = ends_ms
        self.function_name = name
        self.memory_limit_in_mb = 512
        self.invoked_function_arn = f"arn:aws:lambda:eu-west-1:111122223333:function:{name}"
        self.aws_request_id = f"{name}-{ends_ms}"

    def get_remaining_time_in_millis(self) -> int:
        return max(self._ends_ms - self._scheduler.now_ms, 0)


class Function:
    """One function, with one environment for each concurrent invocation."""

    def __init__(
        self,
        name: str,
        handler: Callable[[Any, Context], Any],
        *,
        timeout_seconds: int,
        environment: Mapping[str, str],
        scheduler: Scheduler,
        faults: Faults,
        trace: Trace,
        rollout: Rollout | None = None,
    ) -> None:
        self.name = name
        self.handler = handler
        self._timeout_ms = timeout_seconds * 1000
        self.environment = dict(environment)
        self._scheduler = scheduler
        self._faults = faults
        self._trace = trace
        self._rollout = rollout
        self._idle: list[Process] = []
        self._made = 0

    def invoke(self, event: Any) -> Any:
        """From a task: what the handler returned, or a `FunctionError`. Raises `Throttled`."""
        if self._faults.occurs(Fault.NOT_STARTED):
            raise Throttled
        process, cold = self._take_environment()
        waiter, token = self._scheduler.current, object()
        ended: list[Any] = []

        def end(answer: Any) -> None:
            if ended:
                return
            ended.append(answer)
            if process.alive:
                self._return_environment(process)
            if waiter:
                self._scheduler.wake(waiter, token)

        start_ms = self._scheduler.random.randint(*COLD_START_MS) if cold else 0
        timeout_ms = start_ms + self._timeout_ms
        if self._faults.occurs(Fault.TIMED_OUT):
            timeout_ms = start_ms + self._scheduler.random.randint(1, self._timeout_ms)
        context = Context(self._scheduler, self.name, self._scheduler.now_ms + start_ms + self._timeout_ms)
        self._scheduler.spawn(process, lambda: self._run(process, event, context, end), delay_ms=start_ms)
        self._scheduler.after(timeout_ms, self._time_out, process, ended, end)
        if self._faults.draws(Fault.OUT_OF_MEMORY):
            full_ms = start_ms + self._scheduler.random.randint(
                1, self._scheduler.random.choice(_MEMORY_FULL_WITHIN_MS)
            )
            self._scheduler.after(full_ms, self._run_out_of_memory, process, ended)
        self._scheduler.park(token)
        return ended[0]

    def _run(self, process: Process, event: Any, context: Context, end: Callable[[Any], None]) -> None:
        answer: Any = FunctionError("killed")
        process.invocations += 1
        try:
            answer = self.handler(event, context)
        except Killed:
            # Lambda detects the end of the process.
            answer = FunctionError("ended", exited=process if process.exited else None, killed=not process.exited)
            raise
        except Exception as error:  # noqa: BLE001 - as the runtime does
            answer = FunctionError(f"{type(error).__name__}: {error}")
            self._log(process, f"{RAISED}{answer.what}")
        finally:
            end(answer)

    def _time_out(self, process: Process, ended: list[Any], end: Callable[[Any], None]) -> None:
        if not ended:
            if process.alive:
                self._faults.count(Fault.TIMED_OUT)
                self._log(process, "*timed out")
                self._scheduler.kill(process)
            end(FunctionError("timed out"))

    def _run_out_of_memory(self, process: Process, ended: list[Any]) -> None:
        """Kill all runs of a batch at once. With one thread this equals a kill at a call."""
        if not ended and process.alive and len(process.tasks) > 1:
            self._faults.count(Fault.OUT_OF_MEMORY)
            self._log(process, f"*out of memory, {len(process.tasks)} threads")
            self._scheduler.kill(process)

    def _take_environment(self) -> tuple[Process, bool]:
        code = self._rollout.code(self.name) if self._rollout else PRESENT
        environment = {**self.environment, **code.environment}
        # Environments with another version are not used again.
        self._idle = [process for process in self._idle if environment.items() <= process.environment.items()]
        if self._idle and not self._faults.occurs(Fault.COLD_START):
            process = self._idle.pop(self._scheduler.random.randrange(len(self._idle)))
            self._scheduler.thaw(process)
            return process, False
        self._made += 1
        skew_ms = 0
        if self._faults.occurs(Fault.CLOCK_SKEW):
            skew_ms = self._scheduler.random.randint(-LARGEST_SKEW_MS, LARGEST_SKEW_MS)
        if self._faults.occurs(Fault.CLOCK_FAR_OFF):
            skew_ms = self._scheduler.random.choice([-FAR_OFF_MS, FAR_OFF_MS])
        name = f"{self.name} {self._made}" if code is PRESENT else f"{self.name} {self._made} ({code.name})"
        return Process(name, environment=environment, skew_ms=skew_ms), True

    def _return_environment(self, process: Process) -> None:
        """Freeze the environment. Threads that still run stop until it is used again."""
        current = self._scheduler.current
        if [task for task in process.tasks if current is None or task is not current]:
            self._faults.count(Fault.FROZEN_MID_CALL)
            self._scheduler.interrupted.add(process.name)
        self._scheduler.freeze(process)
        self._idle.append(process)

    def _log(self, process: Process, what: str) -> None:
        self._trace.log(self._scheduler.now_ms, process.name, what)
