"""Ports without AWS, for a job that runs in process: one document, no large payloads, no limits."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final, NoReturn

from tidemill.application.ports import Checkpoint, Entered, LimitSlot, Part, Unreadable, ignore_unreadable
from tidemill.domain.attempt.outcomes import Settlement, errors_after, history_after, open_runs_after
from tidemill.domain.dispatch.job_message import Reference
from tidemill.domain.errors import WriteRefusedError
from tidemill.domain.history import Transition, Why
from tidemill.domain.job import OPERATOR, Job
from tidemill.domain.limits.adaptive_limit import ConcurrencyChange
from tidemill.domain.limits.limit_state import LimitState
from tidemill.domain.limits.limits import Rate
from tidemill.domain.records import replace
from tidemill.domain.states import State, Write
from tidemill.domain.steps.steps import Step
from tidemill.domain.waiting.holds import Holds
from tidemill.domain.waiting.signals import Signal
from tidemill.domain.waiting.waiting import Line
from tidemill.dynamodb.attempt.effects import entries
from tidemill.dynamodb.transactions import Entry, transact
from tidemill.dynamodb.transactions import Part as Purpose

#: https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItem.html
_KINDS: Final = frozenset({"Put", "Update", "Delete", "ConditionCheck"})


class NoJobs:
    """`SubmitStore` that accepts every job and keeps none."""

    def insert_if_absent(self, job: Job, *, batch: Job | None = None) -> Job:  # noqa: ARG002
        return job

    def get(self, _tenant: str, _job_id: str) -> Job | None:
        return None


class OneJob:
    """`AttemptStore` and `ControlStore` of one document. Its writes are not fenced: one run at a time, one thread."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.saved: list[Checkpoint] = []
        self.recorded: list[Step] = []
        self.settled = Settlement(state=job.state)

    def new_token(self) -> str:
        return f"token-{self.job.generation}"

    def get(self, _tenant: str, _job_id: str) -> Job | None:
        return self.job

    def advance(self, _tenant: str, _group: str, *, now: datetime) -> Job | None:  # noqa: ARG002
        """None: the group has no other job."""
        return None

    def claim(
        self,
        _reference: Reference,
        *,
        token: str,
        now: datetime,
        lease_end: datetime,
        worker: str = "",
    ) -> Job:
        job = self.job
        self.job = replace(
            job,
            state=State.RUNNING,
            attempt=job.attempt + 1,
            lease=replace(job.lease, open_runs=job.lease.open_runs + 1, owner=token, claimed_at=now, ready_at=job.due),
            due=lease_end,
            history=(*job.history, Transition(at=now, state=State.RUNNING, cause=Why.CLAIMED, worker=worker)),
        )
        return self.job

    def checkpoint(self, _job: Job, saved: Checkpoint, *, now: datetime) -> bool:
        self.saved.append(saved)
        progress = self.job.progress
        kept = {"checkpoint": saved.state, "done": saved.done, "total": saved.total}
        self.job = replace(self.job, progress=replace(progress, checkpoint_at=now, **_given(kept)))
        return self.job.cancel.requested_at is not None

    def record_step(self, _job: Job, step: Step) -> Job:
        self.recorded.append(step)
        self.job = replace(self.job, steps=self.job.steps.with_step(step))
        return self.job

    def settle(self, _job: Job, settlement: Settlement, *, now: datetime) -> Sequence[Job]:
        job, ends = self.job, settlement.state.terminal
        if job.cancel.requested_at and (settlement.state is State.DEAD or not ends):
            raise WriteRefusedError(Write.SETTLE, job)
        if settlement.writes or settlement.follow_ups:
            _send(settlement)
        self.settled = settlement
        changed = {name: getattr(settlement, name) for name in ("result", "death", "attempt", "hops")}
        self.job = replace(
            job,
            state=settlement.state,
            due=settlement.due,
            generation=job.generation + (not ends),
            lease=replace(
                job.lease, owner=None, last_owner=job.lease.owner, open_runs=open_runs_after(job, settlement)
            ),
            holds=Holds(count=settlement.holds, cause=settlement.hold_cause, others=settlement.other_holds),
            progress=replace(job.progress, checkpoint=settlement.checkpoint or job.progress.checkpoint),
            correction=replace(job.correction, undo=settlement.undo or job.correction.undo),
            wait=settlement.wait,
            signals=replace(
                job.signals,
                awaited=settlement.awaited or job.signals.awaited,
                received=job.signals.received if settlement.signals is None else settlement.signals,
            ),
            steps=replace(job.steps, recorded=() if settlement.state is State.SUCCEEDED else job.steps.recorded),
            errors=errors_after(job, settlement),
            history=history_after(job, settlement, now=now),
            finished_at=now if ends else None,
            **_given(changed),
        )
        return ()

    def signal(self, job: Job, signal: Signal, *, wakes: bool) -> Job:
        self.job = replace(job, signals=job.signals.with_signal(signal))
        if wakes:
            self.job = replace(self.job, state=State.QUEUED, due=signal.at, wait=None, generation=job.generation + 1)
        return self.job

    def cancel(
        self, job: Job, *, now: datetime, by: str = OPERATOR, reason: str = "", as_read: bool = False
    ) -> NoReturn:
        raise AssertionError(f"{job.id} was cancelled at {now} by {by} {reason} {as_read}; set its cancel request")

    def parked(
        self,
        _line: Line,
        *,
        most: int,  # noqa: ARG002
        since: datetime | None = None,  # noqa: ARG002
        unreadable: Unreadable = ignore_unreadable,  # noqa: ARG002
    ) -> list[Job]:
        """Empty: no other job waits."""
        return []

    def unpark(self, job: Job, *, now: datetime, due: datetime) -> NoReturn:
        raise AssertionError(f"{job.id} was released at {now} for {due}; no limit here is full")

    def redrive(
        self, job: Job, *, token: str, now: datetime, by: str, reason: str = "", edited: bool = False
    ) -> NoReturn:
        raise AssertionError(
            f"{job.id} was redriven at {now} by {by} {reason} {edited} for {token}; no DLQ message arrives here"
        )

    def release(self, job: Job, *, now: datetime, due: datetime) -> NoReturn:
        raise AssertionError(f"{job.id} was released at {now} for {due}; no transaction here conflicts")

    def unclaim(self, reference: Reference, *, token: str, now: datetime) -> NoReturn:
        raise AssertionError(f"{reference.job_id} was unclaimed at {now} for {token}; no answer is lost here")


class Inline:
    """`WriterPayloads` that keeps every payload in its document."""

    def put_away(self, job: Job, *, now: datetime | None = None) -> Job:  # noqa: ARG002 - nothing is stored apart
        return job

    def stays_inline(self, job: Job) -> bool:  # noqa: ARG002 - every one does
        return True

    def load(self, job: Job) -> str:
        return job.payload.text or ""

    def delete(self, tenant: str, job_id: str, location: str | None) -> None:
        pass

    def delete_later(self, job: Job) -> None:
        pass


class Unlimited:
    """`Limits` that never hold a job back."""

    def acquire(self, slot: LimitSlot, *, now: datetime) -> Entered | datetime | Line:  # noqa: ARG002
        return Entered()

    def release(self, slot: LimitSlot, change: ConcurrencyChange | None = None) -> bool:  # noqa: ARG002
        return False

    def vacate(self, line: Line, name: str, change: ConcurrencyChange | None = None) -> None:
        pass

    def look(self, line: Line) -> LimitState:  # noqa: ARG002
        return LimitState()

    def reserve(self, line: Line, *_state_and_turns: object, **_leaving: object) -> bool:  # noqa: ARG002
        return True

    def list_line(self, line: Line, rate: Rate, **_job_and_now: object) -> None:
        pass

    def clear(self, line: Line, state: LimitState) -> None:
        pass

    def lines(self, part: Part) -> Iterator[Line]:  # noqa: ARG002
        return iter(())


class _NoTable:
    """The client of DynamoDB, as far as it refuses entries of a transaction before it sends them."""

    def transact_write_items(self, *, TransactItems: Sequence[Any], **_: str) -> None:  # noqa: N803 - of the API
        for entry in TransactItems:
            (kind,) = entry.keys()
            if kind not in _KINDS:
                raise KeyError(kind)


def _send(settlement: Settlement) -> None:
    """The transaction of a settle, without its table: the entries that a group of follow-up jobs adds are missing.

    Raises `EffectRefusedError` and `TransactionTooLargeError` as `AttemptStore.settle`.
    """
    client: Any = _NoTable()
    jobs = [Entry(Purpose.JOB, {"Put": {}}) for _ in settlement.follow_ups]
    effects = [Entry(Purpose.EFFECT, write) for write in entries(settlement.writes)]
    transact(client, [Entry(Purpose.OWN, {"Update": {}}), *jobs, *effects])


def _given(fields: dict[str, Any]) -> dict[str, Any]:
    """The fields to change: None keeps a field as it is."""
    return {name: value for name, value in fields.items() if value is not None}
