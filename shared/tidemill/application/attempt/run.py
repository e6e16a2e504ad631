"""The run that a handler is in: what it may know of its job, and what it may ask of its worker."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from logging import Logger, LoggerAdapter
from typing import Any, ParamSpec, TypeVar

from tidemill.application.attempt.run_log import RunLog
from tidemill.domain.admission.strain import NO_STRAIN
from tidemill.domain.steps.steps import key_of_step

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

#: Takes a step of a run, with the call of its function.
TakeStep = Callable[[str, "partial[Any]"], Any]

#: Saves a state (JSON), `done` and `total`. Raises what `Run.checkpoint` raises.
SaveCheckpoint = Callable[[Any, int | None, int | None], None]

#: Reads the flags of a run.
ReadFlags = Callable[[], Mapping[str, Any]]

#: Reads the level of strain of a run.
ReadLevel = Callable[[], int]


def _no_strain() -> int:
    """For a run outside of a worker."""
    return NO_STRAIN


#: Takes the seconds, if known, and whether the downstream throttled.
Observe = Callable[[float | None, bool], None]


def observe_nothing(_seconds: float | None, _throttled: bool) -> None:  # noqa: FBT001 - `Run.observed` names it
    """For a run whose concurrency does not adapt."""


def _save_nothing(_state: Any, _done: int | None, _total: int | None) -> None:
    """For a run outside of a worker, such as in a test of a handler."""


def only_call(_name: str, call: "partial[Any]") -> Any:
    """For a run outside of a worker."""
    return call()


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The run that a handler is in: its facts, and `checkpoint` to report progress."""

    job_id: str
    tenant: str
    #: Counts from 1.
    attempt: int
    max_attempts: int
    submitted_at: datetime
    #: The run counts as failed after this time, so long work should compare it with the present.
    deadline: datetime
    #: The same in every attempt of the job: pass it to services that take an idempotency key.
    idempotency_key: str
    #: The id of the event that the job consumes, or of the job that it follows; None for others. A replay of an event
    #: has a key of its own and the same parent: use this for an effect that one event must have once.
    parent: str | None = None
    group: str | None = None
    #: The id of the flow of which the job is a node.
    flow: str | None = None
    #: For a node: the results of its parents by name, in the order of `after`; None for a parent that failed or was
    #: skipped. Each use reads them from the table, some at a time, so it may raise `StoreUnavailableError`.
    parents: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)
    #: Snoozes and continuations so far, and those of the jobs that this one follows; bounded by `max_hops` of the type.
    hops: int = 0
    #: The state that the last checkpoint or `Continue` of this job saved, in any run; None before the first.
    resumed_from: Any = None
    #: The data of each signal that the job has got, by name: see `signal`.
    signals: Mapping[str, Any] = field(default_factory=dict)
    #: The signal of the last `WaitFor` or `MissingInput`; None if the job has not waited for one.
    waited_for: str | None = None
    #: The W3C trace context of the submission, for calls of other services; None if the caller sent none.
    traceparent: str | None = None
    #: A logger of the standard library. Its lines carry the fields of the job, also from threads of the handler.
    log: "LoggerAdapter[Logger]" = field(default_factory=lambda: RunLog({}), repr=False, compare=False)
    save: SaveCheckpoint = field(default=_save_nothing, repr=False, compare=False)
    read_flags: ReadFlags = field(default=dict, repr=False, compare=False)
    observe: Observe = field(default=observe_nothing, repr=False, compare=False)
    read_strain: ReadLevel = field(default=_no_strain, repr=False, compare=False)
    take_step: TakeStep = field(default=only_call, repr=False, compare=False)

    @property
    def flags(self) -> Mapping[str, Any]:
        """The flags of the runtime configuration, by name, without those whose end has passed: JSON values.

        An operator sets one with `tidemill config set flags.NAME VALUE`. Each use may read them anew, and a value is at
        most 5 seconds old. If they cannot be read, it returns the last known ones.
        """
        return self.read_flags()

    def observed(self, seconds: float | None = None, *, throttled: bool = False) -> None:
        """Report a call of the downstream, for a type whose concurrency adapts. Other types ignore it.

        The slowest reported call counts instead of the time of the whole handler. `throttled` says that the downstream
        asked for fewer calls. Raises `ValueError` for a time below 0.
        """
        self.observe(seconds, throttled)

    def signal(self, name: str) -> Any:
        """The data (JSON) of the signal of that name, as it was when the run began; None if none had come.

        Data may be null: use `name in run.signals` to tell the two apart.
        """
        return self.signals.get(name)

    @property
    def timed_out(self) -> bool:
        """Whether the job last waited for a signal that has not come."""
        return self.waited_for is not None and self.waited_for not in self.signals

    @property
    def strained(self) -> int:
        """The level of strain, from 0 for none to 3; at most 5 seconds old.

        A handler may take a cheaper path: `if run.strained: …`. An operator sets it with `tidemill config set
        strain.level 2`, and in a stage with `foreground_target_seconds` the governor does. The higher one counts.
        """
        return self.read_strain()

    def step(
        self, name: str, function: Callable[Arguments, Result], /, *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> Result:
        """Call the function and record its result with one write. A later run returns the result without the call.

        The result is JSON, or what the return annotation of the function says and pydantic can turn into JSON, of at
        most 8 KiB. A crash before the record calls the function again: give its effect `step_key(name)`. Each run asks
        for the same steps in the same order, one after another; a name is 1 to 32 characters of a-z, 0-9, '_', '.'
        and '-'.

        Raises what the function raises, and what `checkpoint` raises; `StepError` for a wrong name or result, and
        `StepsChangedError` if the recorded steps are not the first that this run asks for. These two end the job.
        """
        result: Result = self.take_step(name, partial(function, *args, **kwargs))
        return result

    def step_key(self, name: str) -> str:
        """The same in every attempt of the step: pass it to services that take an idempotency key."""
        return key_of_step(self.idempotency_key, name)

    def checkpoint(self, state: Any = None, *, done: int | None = None, total: int | None = None) -> None:
        """Save a state to resume from, and the progress of the job, with one write.

        `state` is JSON of at most 8 KiB; None keeps the state that was saved before. `GET /jobs/{id}` and `tidemill
        watch` show `done` and `total`, which are whole numbers. Call it between steps, and no more often than every few
        seconds.

        Raises `CancelRequestedError` when a cancel was requested, `LeaseLostError` or `JobTimeoutError` when the run
        has ended already, and `CheckpointTooLargeError`. Let them through, or clean up and raise them again.
        """
        self.save(state, done, total)
