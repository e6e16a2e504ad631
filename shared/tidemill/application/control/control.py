"""Control: find, cancel, redrive and signal a caller's own job. Conditional writes decide between parallel requests."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from tidemill.application.job_filter import JobFilter
from tidemill.application.ports import Clock, ControlStore, NewToken
from tidemill.application.submission.validation import may_be_id, stored_json
from tidemill.domain.batches.batches import is_batch
from tidemill.domain.error_text import text_of
from tidemill.domain.errors import (
    Fault,
    InvalidPayloadError,
    NotAllowedNowError,
    PayloadTooLargeError,
    SignalRefusedError,
    WriteRefusedError,
)
from tidemill.domain.flows.flows import is_blocked, is_flow
from tidemill.domain.job import OWNER, Job
from tidemill.domain.states import State
from tidemill.domain.waiting.signal_answers import Answer, answer
from tidemill.domain.waiting.signals import LARGEST_SIGNAL_BYTES, MOST_SIGNALS, Signal, require_name

_REFUSALS: Final[Mapping[Answer, str]] = {
    Answer.OTHER_VALUE: "the job has another value of the signal {name}; the first one counts",
    Answer.ENDED: "the job is {state}, so the signal {name} comes too late",
    Answer.TOO_MANY: f"the job has {MOST_SIGNALS} signals; it can keep no more",
}


class Control:
    """Returns None for a job that is missing, expired or of another tenant, without a difference."""

    def __init__(self, *, store: ControlStore, clock: Clock, new_token: NewToken) -> None:
        self._store = store
        self._clock = clock
        self._new_token = new_token

    def find(self, tenant: str, job_id: str) -> Job | None:
        """Also by an id in upper case: ids are UUIDs, and RFC 9562, section 4, allows any case."""
        job = self._store.get(tenant, job_id.lower()) if may_be_id(job_id) else None
        return None if job is None or job.lifetime.over(self._clock()) else job

    def cancel(self, tenant: str, job_id: str, *, by: str = OWNER, reason: str = "") -> Job | None:
        """End the job at once, or request its end if it runs, and return it. A cancelled job stays as it is.

        `by` and `reason` are for the audit entry.

        Raises `NotAllowedNowError` for a job that succeeded, and for a node of a flow that is blocked.
        """
        job = self.find(tenant, job_id)
        if job is not None and job.flow and is_blocked(job):
            # A redrive of the flow would replace the document, and the cancel with it.
            why = f"a blocked node of the flow {job.flow.id}, which a redrive starts,"
            raise NotAllowedNowError("cancelled", job, why, instead="; cancel the flow")
        if job is None or job.state is State.CANCELLED:
            return job
        try:
            return self._store.cancel(job, now=self._clock(), by=by, reason=reason)
        except WriteRefusedError as refused:
            if refused.current is None:
                return None
            raise NotAllowedNowError("cancelled", refused.current) from refused

    def signal(self, tenant: str, job_id: str, name: str, data: Any) -> Job | None:
        """Give the job the data (JSON) under this name, and return it. It runs at once if it waits for that.

        The first value counts, and the same again changes nothing. Raises `InvalidPayloadError`,
        `PayloadTooLargeError`, and `SignalRefusedError` for another value, and for a job that has ended or is a batch
        or a flow.
        """
        return self._signal(tenant, job_id, name, data, of_composite=False)

    def signal_composite(self, tenant: str, job_id: str, name: str, *, kept_dead: bool = False) -> Job | None:
        """Signal a batch or a flow: the name says whether it is closed or cancelled.

        `kept_dead`: a dead one keeps it for the run after a redrive.
        """
        return self._signal(tenant, job_id, name, True, of_composite=True, kept_dead=kept_dead)

    def _signal(
        self, tenant: str, job_id: str, name: str, data: Any, *, of_composite: bool, kept_dead: bool = False
    ) -> Job | None:
        text = _signal_text(name, data)
        while (job := self.find(tenant, job_id)) is not None:
            if not of_composite and (is_batch(job) or is_flow(job)):
                # Another value of the name that closes or cancels it would leave it without an end.
                what = "batch" if is_batch(job) else "flow"
                raise SignalRefusedError(f"the job is that of a {what}, which takes no signals")
            found = answer(job, name, text, kept_dead=kept_dead)
            if found is Answer.REPEATED:
                return job
            if found in _REFUSALS:
                raise SignalRefusedError(_REFUSALS[found].format(name=name, state=job.state))
            # A refused write means that the job changed after the read: then another answer may be right.
            with suppress(WriteRefusedError):
                signal = Signal(name=name, at=self._clock(), data=text)
                return self._store.signal(job, signal, wakes=found is Answer.WAKES)
        return None

    def cancel_found(self, job: Job, wanted: JobFilter, *, by: str, reason: str = "") -> bool:
        """Cancel a job that a filter found. False if the filter does not match it any more."""
        while job in wanted:
            try:
                self._store.cancel(job, now=self._clock(), by=by, reason=reason, as_read=True)
            except WriteRefusedError as refused:
                current = refused.current
                if current is None or current.created_at != job.created_at:
                    return False
                if (current.state, current.generation) == (job.state, job.generation):
                    return False  # its state permits no cancel
                job = current
            else:
                return True
        return False

    def redrive(self, tenant: str, job_id: str) -> Job | None:
        """Requeue a dead job with a fresh set of attempts, and return it.

        Raises `NotAllowedNowError` for a job that is not dead, also when a concurrent redrive requeued it.
        """
        while (job := self.find(tenant, job_id)) is not None and job.state is State.DEAD:
            # A refused write means that the job changed after the read. If it died again, redrive that death.
            with suppress(WriteRefusedError):
                return self._store.redrive(job, token=self._new_token(), now=self._clock(), by=OWNER)
        if job is None:
            return None
        raise NotAllowedNowError("redriven", job)


def _signal_text(name: str, data: Any) -> str:
    try:
        require_name(name)
    except ValueError as error:
        raise InvalidPayloadError([Fault("/name", str(error))]) from error
    try:
        text = stored_json(data)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidPayloadError([Fault("", f"the data of a signal must be JSON: {text_of(error)}")]) from error
    if len(text) > LARGEST_SIGNAL_BYTES:
        raise PayloadTooLargeError(len(text), LARGEST_SIGNAL_BYTES, what="signal")
    return text
