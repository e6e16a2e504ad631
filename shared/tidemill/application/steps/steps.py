"""The steps of one run: those that earlier runs recorded return their results, and each new one is recorded."""

from collections.abc import Callable
from functools import partial
from threading import Lock
from typing import Any

from tidemill.application.ports import AttemptStore, Clock
from tidemill.application.steps.step_result import StepResult
from tidemill.domain.attempt.return_values import WORK_NOT_DONE, Continue
from tidemill.domain.errors import (
    CancelRequestedError,
    LeaseLostError,
    StepError,
    StepsChangedError,
    StoreUnavailableError,
    TidemillError,
    TransactionConflictError,
    WriteRefusedError,
)
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.steps.steps import LARGEST_STEPS_BYTES, MOST_STEPS, Step, require_same_order
from tidemill.domain.waiting.signals import NAME_PATTERN, is_name


class Steps:
    """Takes and records the steps of the run that claimed `job`."""

    def __init__(
        self,
        job: Job,
        store: AttemptStore,
        clock: Clock,
        *,
        version: str,
        under_way: Callable[[], None],
        writes: Callable[[Job], None],
    ) -> None:
        """`under_way` raises if the run is over. `writes` gets the job as a write of a step may leave it.

        `version` is that of the code; empty if unknown.
        """
        self._job = job
        self._store = store
        self._clock = clock
        self._version = version
        self._under_way = under_way
        self._writes = writes
        self._asked: list[str] = []
        self._cancel_requested = False
        #: From then on no step runs: what the document has may not be what the handler knows.
        self._fault: TidemillError | None = None
        self._one_at_a_time = Lock()

    def take(self, name: str, call: "partial[Any]") -> Any:
        """Take a step for `Run.step`."""
        if not self._one_at_a_time.acquire(blocking=False):
            self._fault = StepError(
                f"the step {name!r} was asked for within another: take one after another, in one thread"
            )
            raise self._fault
        try:
            self.require_sound()
            return self._take(name, call)
        finally:
            self._one_at_a_time.release()

    def require_sound(self) -> None:
        """Raises what a step has raised of its own: the handler may have caught it, or have raised another error."""
        if self._fault:
            raise self._fault

    def of_another_version(self, value: Any) -> StepsChangedError | None:
        """The error of a success that lacks the last of the recorded steps, unless this version of the code added it.

        In the same version it is a defect.
        """
        self.require_sound()
        recorded = self._job.steps.recorded
        if isinstance(value, (*WORK_NOT_DONE, Continue)) or len(self._asked) >= len(recorded):
            return None
        own = self._version in {"", recorded[-1].version}
        return None if own else StepsChangedError([each.name for each in recorded], self._asked)

    def end(self, value: Any) -> None:
        """The handler has returned `value`. A success must have asked for each recorded step."""
        self.require_sound()
        if not isinstance(value, (*WORK_NOT_DONE, Continue)):
            require_same_order(self._job.steps.recorded, self._asked, ended=True)

    def _take(self, name: str, call: "partial[Any]") -> Any:
        try:
            result = self._next(name, call)
            position = len(self._asked) - 1
            if position < len(self._job.steps.recorded):
                return result.value(self._job.steps.recorded[position].result)
            result.require_readable()
        except StepError as fault:
            self._fault = fault
            raise
        self._under_way()
        if self._cancel_requested:
            raise CancelRequestedError("the job was asked to end")
        try:
            value = call()
        except BaseException:
            # The handler may catch it, and ask again.
            self._asked.pop()
            raise
        try:
            text = result.text(value)
            # What cannot be read back is not recorded: no later run could go on behind it.
            known = result.read_back(text, value)
            attempt = self._job.attempt
            self._record(Step(name=name, at=self._clock(), attempt=attempt, result=text, version=self._version))
        except (StepError, LeaseLostError, StoreUnavailableError, TransactionConflictError) as fault:
            self._fault = fault
            raise
        return known

    def _next(self, name: str, call: "partial[Any]") -> StepResult:
        """Count the step as asked for. Raises `StepError`."""
        if not is_name(name):
            raise StepError(f"invalid step name {name!r}: it must match {NAME_PATTERN}")
        if name in self._asked:
            raise StepError(f"the step {name!r} was asked for twice: give each step a name of its own")
        self._asked.append(name)
        require_same_order(self._job.steps.recorded, self._asked)
        if len(self._asked) > MOST_STEPS:
            raise StepError(f"a job may have at most {MOST_STEPS} steps: go on in a follow-up job, or use checkpoints")
        return StepResult(name, call.func)

    def _record(self, step: Step) -> None:
        taken = sum(len(each.result) for each in (*self._job.steps.recorded, step))
        if taken > LARGEST_STEPS_BYTES:
            raise StepError(
                f"with the step {step.name!r} the results of the steps are {taken} bytes; a job may keep at most "
                f"{LARGEST_STEPS_BYTES}: store the large ones in a bucket or table of yours, and return their keys"
            )
        self._under_way()
        self._writes(replace(self._job, steps=self._job.steps.with_step(step)))
        try:
            written = self._store.record_step(self._job, step)
        except WriteRefusedError as refused:
            raise LeaseLostError("this run no longer holds the lease of the job") from refused
        self._job = replace(self._job, steps=written.steps)
        self._cancel_requested = written.cancel.requested_at is not None
