"""Owed work: what publish could not do at its stream record. It is stored, so that the record blocks no others.

If another caller fails to delete a payload, that deletion becomes owed work, too: see `OwingPayloads`.

Wake and reconcile do the work: each minute at first, then less often. The first failure of each work is kept, so that
it is reported when it fails for too long, however late the stream was. Any number of callers may do it at once.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import islice
from typing import Final, Protocol

from msgspec import Struct

from tidemill.application.dispatch.nudge import Nudger
from tidemill.application.ports import WHOLE, Clock, OwedStore, Part, Payloads
from tidemill.application.submission.unnamed_payloads import names_payload
from tidemill.domain.error_text import error_text
from tidemill.domain.errors import StoreUnavailableError, WriteRefusedError
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import TRANSITIONS, State, Write
from tidemill.names import WAKE_INTERVAL_SECONDS

#: Work that fails for longer than this, from its first failure on, is reported: an alarm fires.
PATIENCE: Final = timedelta(minutes=5)
#: The pause after a failure. It doubles up to the longest.
_FIRST_PAUSE: Final = timedelta(seconds=WAKE_INTERVAL_SECONDS)
LONGEST_PAUSE: Final = timedelta(minutes=15)
_MOST_DOUBLINGS: Final = 4
_AT_ONCE: Final = 8
#: A run whose lease ended this long ago is lost.
_LOST_AFTER: Final = timedelta(minutes=1)


class Kind(StrEnum):
    """What is to be done."""

    #: Advance a group.
    ADVANCE = "advance"
    #: Let a flow look at its nodes: one of them has ended, or was added.
    FLOW = "flow"
    #: Bring a job on its way whose stream record could not be read, or whose message SQS refused.
    DISPATCH = "dispatch"
    #: Delete a payload that no document names: its job is deleted, or never came into being, or has another one. Also
    #: owed by the callers whose own deletion failed, or whose write of the job may still arrive.
    DELETE_PAYLOAD = "delete payload"


class Work(Struct, frozen=True, kw_only=True):
    """`name` is the name of the group, or the id of the job or the flow."""

    kind: Kind
    tenant: str
    name: str
    #: The location of the payload to delete, unless the document of the job names it; else None.
    payload_at: str | None = None


class Owed(Struct, frozen=True, kw_only=True):
    """The stored work."""

    work: Work
    #: When publish failed to do it for the first time.
    since: datetime
    next_try: datetime
    #: The number of tries to do it since then.
    tries: int
    #: The last failure, for the log.
    error: str
    #: The message was sent again. Publish clears it if it fails once more.
    resent: bool
    #: The version that was read: a fresh token for each write.
    version: str
    #: How often publish failed to do it, as it was read.
    failures: int


class OwedWork(Protocol):
    """The stored works."""

    def owe(self, work: Work, *, now: datetime, error: str) -> None:
        """Store the work. If it is stored already, its first failure stays."""

    def pending(self, *, before: datetime, part: Part = WHOLE) -> Iterator[Owed]:
        """The works of the part whose next try is not after `before`, the earliest first, each read consistently."""

    def put_off(self, owed: Owed, *, until: datetime, error: str | None) -> None:
        """Try again at `until`. `error` is None if the message was sent again. No-op if it has changed meanwhile."""

    def done(self, owed: Owed) -> None:
        """Delete the work, unless it has been owed once more since it was read."""


class OwedResult(Struct, frozen=True, kw_only=True):
    """The result of one call. `advanced` and `resent` are jobs whose messages are on their way."""

    advanced: Sequence[Job] = ()
    resent: Sequence[Job] = ()
    #: Works that failed for longer than `PATIENCE`.
    overdue: Sequence[Owed] = ()
    #: Whether all pending works were tried.
    finished: bool = True


class _Try(Struct, frozen=True):
    advanced: Job | None = None
    resent: Job | None = None
    overdue: Owed | None = None


def ask_none(_tenant: str, _flow_id: str) -> None:
    """For where no flows are."""


class OwedRunner:
    """Does the owed work."""

    def __init__(
        self,
        *,
        owed: OwedWork,
        store: OwedStore,
        payloads: Payloads,
        clock: Clock,
        ask: Callable[[str, str], None] = ask_none,
    ) -> None:
        """`ask` makes sure that a flow, given by its tenant and id, looks at its nodes."""
        self._ask_flow = ask
        self._owed = owed
        self._store = store
        self._payloads = payloads
        self._nudger = Nudger(store=store, clock=clock, limit=_LOST_AFTER)
        self._clock = clock

    def run_pending(self, in_time: Callable[[], bool], *, part: Part = WHOLE) -> OwedResult:
        """Try the pending works of the part while `in_time`. A failure of one does not affect the others.

        As in wake, the parts go round with each interval.
        """
        tries: list[_Try] = []
        finished = True
        try:
            now = self._clock()
            pending = self._owed.pending(before=now, part=part.at(now))
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                while finished and (batch := list(islice(pending, _AT_ONCE))):
                    tries += pool.map(self._try, batch)
                    finished = in_time()
        except StoreUnavailableError:
            finished = False
        return OwedResult(
            advanced=tuple(done.advanced for done in tries if done.advanced),
            resent=tuple(done.resent for done in tries if done.resent),
            overdue=tuple(done.overdue for done in tries if done.overdue),
            finished=finished,
        )

    def _try(self, owed: Owed) -> _Try:
        try:
            if owed.work.kind is Kind.ADVANCE:
                advanced = self._store.advance(owed.work.tenant, owed.work.name, now=self._clock())
                self._owed.done(owed)
                return _Try(advanced=advanced)
            if owed.work.kind is Kind.FLOW:
                self._ask_flow(owed.work.tenant, owed.work.name)
                self._owed.done(owed)
                return _Try()
            if owed.work.kind is Kind.DELETE_PAYLOAD:
                self._delete_unnamed(owed.work)
                self._owed.done(owed)
                return _Try()
            return self._dispatch(owed)
        except Exception as error:  # noqa: BLE001 - one failure must not stop the others
            failed = replace(owed, error=error_text(error))
            # The store may be unavailable for this item too. Then the next call tries again at once.
            with contextlib.suppress(StoreUnavailableError):
                self._put_off(owed, error=failed.error)
            return _Try(overdue=self._if_overdue(failed))

    def _delete_unnamed(self, work: Work) -> None:
        """The write of the job may have been applied after its caller gave up: see `WriterPayloads.delete_later`."""
        if not names_payload(self._store.get(work.tenant, work.name), work.payload_at):
            self._payloads.delete(work.tenant, work.name, work.payload_at)

    def _dispatch(self, owed: Owed) -> _Try:
        job = None if owed.resent else self._store.get(owed.work.tenant, owed.work.name)
        if job and job.state is State.RUNNING and not self._nudger.nudge(job):
            # A worker claims the next job of its group without a message. If it dies, no message brings the job back:
            # the one that is owed would have. So look again until the run has ended.
            self._put_off(owed, error=owed.error)
            return _Try()
        if job is None or not (job.state is State.RUNNING or self._resent(job)):
            self._owed.done(owed)
            return _Try()
        # Publish may fail again at the record of this change, and say so. Otherwise the next look ends the work.
        self._put_off(owed, error=None)
        # After one failure it was owed for so long because a run lasted, as it may.
        return _Try(resent=job, overdue=self._if_overdue(owed) if owed.failures > 1 else None)

    def _put_off(self, owed: Owed, *, error: str | None) -> None:
        pause = min(_FIRST_PAUSE * 2.0 ** min(owed.tries, _MOST_DOUBLINGS), LONGEST_PAUSE)
        self._owed.put_off(owed, until=self._clock() + pause, error=error)

    def _if_overdue(self, owed: Owed) -> Owed | None:
        return owed if self._clock() - owed.since >= PATIENCE else None

    def _resent(self, job: Job) -> bool:
        """Whether the message of the job is on its way again. False if it needs none."""
        if job.group.key is not None and (job.state.terminal or job.state is State.WAITING):
            self._store.advance(job.tenant, job.group.key, now=self._clock())
        if job.flow and job.state.terminal:
            self._ask_flow(job.tenant, job.flow.id)
        if job.state not in TRANSITIONS[Write.RESEND] or job.lifetime.over(self._clock()):
            return False
        try:
            self._store.resend(job, now=self._clock())
        except WriteRefusedError:
            return False
        return True
