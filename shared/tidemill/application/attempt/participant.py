"""The part that an attempt takes in the handler calls and settles of its batch of messages. By default it is alone."""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Protocol

from msgspec import Struct

from tidemill.application.attempt.gate import Gate
from tidemill.application.attempt.handler_call import call_handler
from tidemill.application.attempt.run import Run
from tidemill.application.attempt.settle import Settle
from tidemill.application.job_types import JobType
from tidemill.domain.attempt.outcomes import Settlement
from tidemill.domain.batch_handlers.joint_call import may_share_a_call, outcomes_of
from tidemill.domain.job import Job


class Called(Struct, frozen=True, eq=False):
    """A job that is ready for its handler."""

    job: Job
    job_type: JobType
    payload: Any
    run: Run
    #: Called just before the handler. Raises `JobTimeoutError` if the time of the job is up, and `StrayThreadError`.
    begin: Callable[[], None]
    #: Called after a call that has failed, if another may follow.
    leave: Callable[[], None] = lambda: None
    #: The gates of its attempt. A participant calls `share` and `counts_in` of them.
    gates: Sequence[Gate] = ()

    @property
    def may_share(self) -> bool:
        return (self.job_type.batch or 1) > 1 and may_share_a_call(self.job, self.job_type.retry)


class Participant(Protocol):
    """One attempt, as the others of its batch of messages know it: it takes part in their calls and settles."""

    def call(self, called: Called) -> Any:
        """What the handler returned for this job. Raises what it raised for it alone, and what `Called.begin` raises.

        Raises `BatchCallError` after a call of several jobs that says nothing of this one: it must run alone next.
        """

    def settle(self, job: Job, settlement: Settlement, *, now: datetime, alone: Settle) -> Sequence[Job]:
        """Settle as `alone` does, which is `AttemptStore.settle`. The first settle after a call may go with others."""

    def leave_call(self) -> None:
        """The attempt calls no handler, so others need not wait for it."""

    def leave_settle(self) -> None:
        """The attempt settles nothing more, so others need not wait for it."""


class SoleParticipant:
    """`Participant` for an attempt without others."""

    def call(self, called: Called) -> Any:
        return called_alone(called)

    def settle(self, job: Job, settlement: Settlement, *, now: datetime, alone: Settle) -> Sequence[Job]:
        return alone(job, settlement, now=now)

    def leave_call(self) -> None:
        pass

    def leave_settle(self) -> None:
        pass


def called_alone(called: Called) -> Any:
    called.begin()
    if called.job_type.batch is None:
        return call_handler(called.job_type.handler, called.payload, called.run)
    (outcome,) = outcomes_of_call([called])
    return value_of(outcome)


def outcomes_of_call(calleds: Sequence[Called]) -> list[Any]:
    """All are of one type with a batch handler."""
    payloads, runs = [called.payload for called in calleds], [called.run for called in calleds]
    return outcomes_of(call_handler(calleds[0].job_type.handler, payloads, runs), len(calleds))


def value_of(outcome: Any) -> Any:
    """Raises an outcome that is an exception, as a handler of one job would."""
    if isinstance(outcome, Exception):
        raise outcome
    return outcome
