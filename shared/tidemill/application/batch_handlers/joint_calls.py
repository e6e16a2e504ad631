"""The calls of batch handlers in one batch of messages: jobs that are ready together share call and settle.

They are of one type and one tenant, so that no error, line or effect of a call can bring a text to another tenant.

Each job keeps its own claim, gates, outcome and settle. Threads wait for each other at two points only: before the
handler, and before the writes of those that succeeded. The jobs of a failed call are halved, until the one that fails
is alone.
"""

from collections.abc import Callable, Hashable, Sequence
from contextlib import AbstractContextManager, nullcontext
from datetime import datetime
from functools import partial
from typing import Any, Final

from msgspec import Struct

from tidemill.application.attempt.attempt_context import AttemptContext
from tidemill.application.attempt.combiner import Combiner
from tidemill.application.attempt.participant import Called, called_alone, outcomes_of_call, value_of
from tidemill.application.attempt.settle import SETTLE_PAUSE_SECONDS, SETTLE_TRIES, Settle
from tidemill.application.batch_handlers.failed_call import FailedCall, Halving
from tidemill.application.breakers.breaker_use import SharedCall
from tidemill.application.ports import SettleJointly, Settling
from tidemill.domain.attempt.error_groups import OUTAGE, decisive
from tidemill.domain.attempt.outcomes import Settlement
from tidemill.domain.errors import (
    BatchCallError,
    BreakerOpenError,
    JobTimeoutError,
    StoreUnavailableError,
    StrayThreadError,
    TidemillError,
    TransactionConflictError,
)
from tidemill.domain.job import Job
from tidemill.domain.states import State

#: How long a job waits at most for the claims of the other messages, which run at the same time as its own.
LONGEST_WAIT_FOR_CLAIMS_SECONDS: Final = 1.0
#: How long a success waits at most for the outcomes of the others of its call. Those need no time, unless the payload
#: of a follow-up job must be stored.
LONGEST_WAIT_FOR_OUTCOMES_SECONDS: Final = 0.5

#: Entered around the call of a handler with these jobs, in its thread.
JointScope = Callable[[Sequence[Job]], AbstractContextManager[None]]


class _Returned(Struct, frozen=True):
    """For one job of a call: what the handler returned, or the error that its attempt ends with."""

    value: Any = None
    error: Exception | None = None
    settles: "Combiner[Settling, TidemillError | None] | None" = None
    #: Its next call, with half of the jobs of this one, which has failed.
    half: "Combiner[_Ready, _Returned] | None" = None


_Ready = tuple["JointParticipant", Called]


class JointCalls:
    """Makes the shared calls of one batch of messages."""

    def __init__(
        self,
        context: AttemptContext,
        *,
        participants: int,
        scope: JointScope = lambda _jobs: nullcontext(),
        longest_wait_seconds: float | None = None,
    ) -> None:
        """By default, a job waits for `LONGEST_WAIT_FOR_CLAIMS_SECONDS`."""
        self._context = context
        self._scope = scope
        self.participants = [JointParticipant(self) for _ in range(participants)]
        self.calls: Combiner[_Ready, _Returned] = Combiner(
            self._call,
            expected=self.participants,
            longest_wait_seconds=longest_wait_seconds or LONGEST_WAIT_FOR_CLAIMS_SECONDS,
            batch_of=_batch_of,
        )

    def _call(self, batch: Sequence[_Ready], after: FailedCall | None = None) -> list[_Returned]:
        """Call the handler once, with those that may still begin. `after` is the call that they have failed in."""
        with after.halving.turn if after else nullcontext():
            answers: dict[JointParticipant, _Returned] = {}
            ready: list[_Ready] = []
            for participant, called in batch:
                try:
                    if after:
                        after.require_use_of_another(by=called.run.deadline, now=self._context.clock())
                    if len(batch) > 1:
                        for gate in called.gates:
                            gate.share()
                    called.begin()
                    ready.append((participant, called))
                except (JobTimeoutError, StrayThreadError, BatchCallError) as refused:
                    answers[participant] = _Returned(error=refused)
            if ready:
                answers |= self._returned(ready, after.halving if after else Halving(len(ready)))
            return [answers[participant] for participant, _ in batch]

    def _returned(self, ready: Sequence[_Ready], halving: Halving) -> dict["JointParticipant", _Returned]:
        participants, calleds = [participant for participant, _ in ready], [called for _, called in ready]
        began, failure = self._context.steady(), None
        try:
            call = SharedCall()
            for gate in (gate for called in calleds for gate in called.gates):
                gate.counts_in(call)
            with self._scope([called.job for called in calleds]) if len(calleds) > 1 else nullcontext():
                outcomes = call.outcomes = outcomes_of_call(calleds)
        except Exception as error:  # noqa: BLE001 - as of any handler
            failure = error
        halving.ended(failure, self._context.steady() - began)
        if failure:
            return self._failed(ready, failure, halving)
        settle_jointly, settles = self._context.settle_jointly, None
        if settle_jointly and len(participants) > 1:
            settles = Combiner(
                partial(self._settle, settle_jointly),
                expected=participants,
                longest_wait_seconds=LONGEST_WAIT_FOR_OUTCOMES_SECONDS,
                batch_of=lambda _settling: (None, len(participants)),
            )
        return {
            participant: _Returned(value=outcome, settles=settles)
            for participant, outcome in zip(participants, outcomes, strict=True)
        }

    def _failed(
        self, ready: Sequence[_Ready], error: Exception, halving: Halving
    ) -> dict["JointParticipant", _Returned]:
        """Each job of a failed call has another one with half of them, unless the error is about one job or none."""
        jobs = len(ready)
        if jobs == 1 or isinstance(meant := decisive(error), (BreakerOpenError, *OUTAGE)):
            return {participant: _Returned(error=error if jobs == 1 else _own(meant)) for participant, _ in ready}
        failed = FailedCall(error, jobs, halving)
        if not failed.another_helps:
            return {participant: _Returned(error=failed.error_of_one()) for participant, _ in ready}
        returned: dict[JointParticipant, _Returned] = {}
        for half in (ready[: jobs // 2], ready[jobs // 2 :]):
            participants = [participant for participant, _ in half]
            calls: Combiner[_Ready, _Returned] = Combiner(
                partial(self._call, after=failed),
                expected=participants,
                longest_wait_seconds=LONGEST_WAIT_FOR_CLAIMS_SECONDS,
                batch_of=_batch_of,
            )
            returned |= {participant: _Returned(half=calls) for participant in participants}
        return returned

    def _settle(self, jointly: SettleJointly, settlings: Sequence[Settling]) -> list[TidemillError | None]:
        """Settle them in few transactions. What other transactions or an outage stop is tried again, as a settle is."""
        errors: dict[Settling, TidemillError | None] = {}
        left = list(settlings)
        for attempt in range(SETTLE_TRIES):
            errors |= dict(zip(left, jointly(left), strict=True))
            left = [each for each in left if isinstance(errors[each], StoreUnavailableError | TransactionConflictError)]
            if not left:
                break
            self._context.pause(SETTLE_PAUSE_SECONDS * 2**attempt * self._context.draw())
        return [errors[each] for each in settlings]


class JointParticipant:
    """`Participant` of the attempts of one message, one after another."""

    def __init__(self, calls: JointCalls) -> None:
        self._calls = calls
        #: Combines the first settle after a call with those of the others.
        self._settles: Combiner[Settling, TidemillError | None] | None = None

    def call(self, called: Called) -> Any:
        if not called.may_share:
            self.leave_call()
            return called_alone(called)
        returned = self._calls.calls.combine((self, called), by=self)
        while returned.half:
            called.leave()
            returned = returned.half.combine((self, called), by=self)
        self._settles = returned.settles
        if returned.error:
            raise returned.error
        return value_of(returned.value)

    def settle(self, job: Job, settlement: Settlement, *, now: datetime, alone: Settle) -> Sequence[Job]:
        settles, self._settles = self._settles, None
        if settles is None:
            return alone(job, settlement, now=now)
        if settlement.state is not State.SUCCEEDED or not settlement.writes or settlement.follow_ups:
            settles.leave(self)
            return alone(job, settlement, now=now)
        if error := settles.combine(Settling(job, settlement, now), by=self):
            raise error
        return ()

    def leave_call(self) -> None:
        self._calls.calls.leave(self)

    def leave_settle(self) -> None:
        if self._settles:
            self._settles.leave(self)


def _own(error: BaseException) -> Exception:
    """For one job of a call that ends for all of its jobs: no two threads raise the same exception."""
    return BreakerOpenError(error.name) if isinstance(error, BreakerOpenError) else StoreUnavailableError(str(error))


def _batch_of(ready: _Ready) -> tuple[Hashable, int]:
    called = ready[1]
    return (called.job_type.name, called.job.tenant), called.job_type.batch or 1
