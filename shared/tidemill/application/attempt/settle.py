"""Settle: write the outcome of a run, and report the effect on its message.

Three retry loops nest. Each repeats all tries of the loop below it:

- settle, 4 tries (`Settler._settle_as`): the same settlement again, after an outage or a conflict with another
  transaction. It pauses after each try for a random time below 0.1, 0.2, 0.4 and 0.8 s.
- transaction, 8 tries (`dynamodb/attempt/settle_transaction.py`): a new set of entries, since a follow-up job exists
  already or its group moved. Only a settlement with writes or follow-up jobs is a transaction.
- SDK, 3 tries (`aws/clients.py`): the same call again, after a network error, throttling or a server error.

`Settler.settle` is around them. It replaces a settlement that can never be written by another, and does not retry.
"""

import contextlib
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final, Protocol

from tidemill.application.attempt.attempt_context import AttemptContext
from tidemill.application.attempt.attempt_report import Ending, Report, RunObserver
from tidemill.application.submission.unnamed_payloads import names_payload
from tidemill.domain.attempt.outcomes import (
    Awaits,
    Continued,
    Failed,
    Held,
    Outcome,
    Parked,
    Settlement,
    Snoozed,
    Stopped,
    Succeeded,
    new_errors,
    settlement,
)
from tidemill.domain.attempt.retry import RetryPolicy
from tidemill.domain.dispatch.claim_verdict import judge, put_back_time
from tidemill.domain.dispatch.job_message import Reference
from tidemill.domain.errors import (
    EffectRefusedError,
    KeyReusedError,
    StoreUnavailableError,
    TransactionConflictError,
    TransactionTooLargeError,
    WriteRefusedError,
)
from tidemill.domain.job import Job
from tidemill.domain.records import replace

#: How often one settlement is tried, and the ceiling of the first random pause after a try. The ceiling doubles.
SETTLE_TRIES: Final = 4
SETTLE_PAUSE_SECONDS: Final = 0.1
#: How often a run is given back because of conflicts, for a random time below a ceiling that doubles. After that, the
#: conflict counts as a failure of the job. Else a job whose transaction can never commit would run for ever and use up
#: no attempt.
MOST_RELEASES: Final = 8
LONGEST_RELEASE_SECONDS: Final = 60.0
#: The outcomes with values of a handler.
_RETURNED: Final = (Succeeded, Snoozed, Continued, Awaits, Failed)


class Settle(Protocol):
    """Writes a settlement, as `AttemptStore.settle`."""

    def __call__(self, job: Job, settlement: Settlement, *, now: datetime) -> Sequence[Job]: ...


class ParticipantSettle(Protocol):
    """Settles one job, alone or with others."""

    def __call__(self, job: Job, settlement: Settlement, *, now: datetime, alone: Settle) -> Sequence[Job]: ...


class Settler:
    """Ends the run that claimed a job from the message `reference`. The observer gets each report at once."""

    def __init__(
        self, reference: Reference, context: AttemptContext, observer: RunObserver, *, settle: ParticipantSettle
    ) -> None:
        self._reference = reference
        self._context = context
        self._observer = observer
        self._settle = settle
        self._began: datetime | None = None
        #: The settlements that may be written although no try had an answer, each with its outcome and its time.
        self._unanswered: list[tuple[Outcome, Settlement, datetime]] = []

    def begin(self) -> None:
        """The claim begins now."""
        self._began = self._context.steady()

    def settle(self, job: Job, outcome: Outcome, policy: RetryPolicy) -> Report:
        """Raises `StoreUnavailableError` when it is unknown whether the settlement was written.

        `policy` is that with which the run began.

        The outcome is settled as given. If that can never be written, one of these takes its place: cancelled, when a
        cancel was requested; the wait, with the signals that came; failed, when the store refuses the effect, or the
        settlement cannot be encoded; failed, when conflicts never end.
        """
        settled = self._settle_as(job, outcome, policy)
        while not isinstance(settled, Report):
            settled = self._settle_as(job, settled, policy)
        if not settled.follow_ups:
            self.delete_unused_payloads(job, outcome)
        return settled

    def delete_unused_payloads(self, job: Job, outcome: Outcome) -> None:
        """Delete the payloads of the follow-up jobs that the end of the run has not created.

        The documents decide, not the result of a call: behind a conflict may be an applied success whose answer was
        lost. Nor does the state of the job, since a redrive or a cancel may have changed it. If a document cannot be
        read, the payloads stay, and no job loses its payload. No error here may change a result that is settled.
        """
        made = outcome.follow_ups if isinstance(outcome, Succeeded | Failed) else ()
        stored = [each for each in made if each.payload.location]
        if not stored:
            return
        store = self._context.store
        with contextlib.suppress(Exception):
            current = store.get(job.tenant, job.id)
            if current is None or not job.settled_in(current):
                # An earlier send of its settle may be applied yet.
                return
            self._delete_payloads(
                [each for each in stored if not names_payload(store.get(each.tenant, each.id), each.payload.location)]
            )

    def _delete_payloads(self, jobs: Sequence[Job]) -> None:
        """Best effort: no document names them, and no failure here may change a result that is settled already.

        If one can neither be deleted nor owed, reconcile deletes an item, and the bucket's own rule of age a file.
        """
        for job in jobs:
            with contextlib.suppress(Exception):
                self._context.payloads.delete(job.tenant, job.id, job.payload.location)

    def _settle_as(self, job: Job, outcome: Outcome, policy: RetryPolicy) -> Report | Outcome:
        """The report, or the outcome to settle instead."""
        now = self._context.clock()
        written = settlement(job, outcome, policy, now=now, draw=self._context.draw())
        for attempt in range(SETTLE_TRIES):
            try:
                # The same settlement each time: DynamoDB refuses a client token that comes again with other content.
                existed = self._settle(job, written, now=now, alone=self._context.writes.settle)
            except WriteRefusedError as refused:
                return _instead(job, outcome, written, refused.current) or self._refused(job, refused.current, now)
            except (EffectRefusedError, KeyReusedError, TransactionTooLargeError) as refused:
                return Failed.because(refused)
            except (StoreUnavailableError, TransactionConflictError) as unsettled:
                trouble = unsettled
                self._context.pause(SETTLE_PAUSE_SECONDS * 2**attempt * self._context.draw())
            except Exception as fault:
                # What the run returned cannot be written: it cannot be encoded, or the document is too large, for
                # example. The attempt has failed with this error, whose settlement is as small as any.
                if not isinstance(outcome, _RETURNED) or (isinstance(outcome, Failed) and not outcome.follow_ups):
                    raise
                self._unanswered.append((outcome, written, now))
                return replace(Failed.because(fault), cause=fault)
            else:
                report = self._observed(_report(job, outcome, written, now, existed=existed))
                self._delete_payloads(existed)
                return report
        self._unanswered.append((outcome, written, now))
        if isinstance(trouble, StoreUnavailableError):
            raise trouble
        if job.lease.releases >= MOST_RELEASES:
            return Failed.because(trouble)
        return self._release(job, trouble)

    def _release(self, job: Job, conflict: TransactionConflictError) -> Report:
        now = self._context.clock()
        ceiling_seconds = min(2.0**job.lease.releases, LONGEST_RELEASE_SECONDS)
        try:
            due = now + timedelta(seconds=ceiling_seconds * self._context.draw())
            self._context.store.release(job, now=now, due=due)
        except WriteRefusedError as refused:
            return self._refused(job, refused.current, now)
        return self._observed(Report(ending=Ending.RELEASED, job=job, error=str(conflict)))

    def _refused(self, job: Job, current: Job | None, now: datetime) -> Report:
        """Return the report of the settle or release that ended this run; else another worker took the job over.

        That worker may have this very message, which stays until it settles.
        """
        if current and job.released_in(current):
            return self._observed(Report(ending=Ending.RELEASED, job=job))
        for outcome, written, settled_at in self._unanswered:
            if current and job.settled_in(current) and current.state is written.state:
                return self._observed(_report(job, outcome, written, settled_at, existed=()))
        verdict = judge(self._reference, current)
        until = None if verdict.acknowledged else put_back_time(verdict, current, now)
        return self._observed(Report(ending=Ending.FENCED, job=job, verdict=verdict, put_back_until=until))

    def _observed(self, report: Report) -> Report:
        report = replace(report, took=self._context.steady() - self._began if self._began else None)
        self._observer.ended(self._reference, report)
        return report


def _instead(job: Job, outcome: Outcome, written: Settlement, current: Job | None) -> Outcome | None:
    """The outcome to settle instead of a refused one, if the run still holds the job."""
    if current is None or current.lease.owner != job.lease.owner:
        return None
    if current.cancel.requested_at and not isinstance(outcome, Stopped):
        # The job may not live on, or die.
        return Stopped()
    if written.rests_on_look and current.flow_state.looks != job.flow_state.looks:
        # What it was asked to look at may be what it waits for.
        return Continued(checkpoint=None)
    if written.signals_known is not None and len(current.signals.received) != written.signals_known:
        # It may be the one to wait for, or cancel the batch.
        return (
            replace(outcome, arrived=current.signals.received)
            if isinstance(outcome, Awaits)
            else Continued(checkpoint=None)
        )
    return None


def _report(job: Job, outcome: Outcome, written: Settlement, now: datetime, *, existed: Sequence[Job]) -> Report:
    """`existed` are the follow-up jobs that earlier submissions have made."""
    error = f"{written.error.error_class}: {written.error.message}" if written.error else None
    match outcome:
        case Snoozed():
            ending = Ending.SNOOZED
        case Continued():
            ending = Ending.CONTINUED
        case Awaits() if not written.state.terminal:
            ending = Ending.AWAITING
        case Held():
            ending, error = Ending.HELD, outcome.error
        case Parked():
            ending = Ending.PARKED
        case Failed() if not written.state.terminal:
            # The state is scheduled if the lane cannot delay the job for so long.
            ending = Ending.RETRYING
        case _:
            ending = Ending(written.state.value)
    return Report(
        ending=ending,
        job=job,
        error=error,
        death=written.death,
        cause=outcome.cause if isinstance(outcome, Failed) else None,
        settled_at=now,
        errors=new_errors(job, written),
        follow_ups=tuple(follow_up for follow_up in written.follow_ups if follow_up not in existed),
        again=None
        if written.state.terminal
        else replace(job, state=written.state, due=written.due, generation=job.generation + 1),
        job_is_terminal=written.state.terminal,
    )
