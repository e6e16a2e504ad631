"""The job documents in DynamoDB: one call per write. A refused write returns the item, which tells the reason."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from tidemill.application.ports import Checkpoint, Settling
from tidemill.aws.clients import Item, translated
from tidemill.aws.refused_write import refusing_item
from tidemill.domain.attempt.outcomes import Settlement
from tidemill.domain.corrections.undo import Undone
from tidemill.domain.dispatch.job_message import Reference
from tidemill.domain.errors import BatchRefusedError, TidemillError, WriteRefusedError
from tidemill.domain.history import LEAST_KEPT_AFTER_FAILURE, Transition, Why
from tidemill.domain.job import OPERATOR, Job, Redrive
from tidemill.domain.job_parts import CancelRequest
from tidemill.domain.states import State, Write, allowed
from tidemill.domain.steps.steps import Step
from tidemill.domain.waiting.signals import Signal
from tidemill.domain.waiting.waiting import Wait
from tidemill.dynamodb import job_writes
from tidemill.dynamodb.attempt import settle_requests
from tidemill.dynamodb.attempt.settle_transaction import settle_with_effects
from tidemill.dynamodb.corrections import undo_writes
from tidemill.dynamodb.document import decode
from tidemill.dynamodb.flows import flow_writes
from tidemill.dynamodb.groups.groups import DynamoGroups, retried
from tidemill.dynamodb.indexes import NOT_LISTED, Indexes
from tidemill.dynamodb.job_reader import JobReader
from tidemill.dynamodb.operations import operator_writes
from tidemill.dynamodb.steps import run_writes
from tidemill.dynamodb.transactions import Part, RefusedError, own
from tidemill.dynamodb.update_requests import Request
from tidemill.dynamodb.waiting import signal_writes

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


class DynamoJobStore(JobReader):
    """The store of jobs over one table.

    Terminal documents are kept for `retention`, unless their type sets another time.
    """

    def __init__(
        self,
        client: "DynamoDBClient",
        *,
        table: str,
        retention: timedelta,
        indexes: Indexes = NOT_LISTED,
    ) -> None:
        super().__init__(client, table=table)
        self._retention = retention
        self._indexes = indexes
        self._groups = DynamoGroups(client, table=table, read=self.get, indexes=indexes)

    def insert_if_absent(self, job: Job, *, batch: Job | None = None) -> Job:
        def mine(current: Job) -> bool:
            same = (current.trace, current.created_at, current.body_hash) == (job.trace, job.created_at, job.body_hash)
            # An ended document of a node: in this millisecond another look may have started the node.
            return same and (not job.state.terminal or (current.state, current.flow) == (job.state, job.flow))

        if job.group.key is None and batch is None:
            self._write(self._client.put_item, Write.INSERT, self._insertion(job), mine=mine)
            return job
        from tidemill.dynamodb.batches import batch_pages  # noqa: PLC0415 - most jobs join no batch

        joins = [own("Update", batch_pages.join(job, batch), table=self._table, part=Part.BATCH)] if batch else []
        try:
            return self._groups.insert(job, self._insertion, mine=mine, beside=joins)
        except RefusedError as refused:
            raise BatchRefusedError(batch_pages.refusal_of(refused.of(Part.BATCH)[0].item)) from None

    def claim(self, reference: Reference, *, token: str, now: datetime, lease_end: datetime, worker: str = "") -> Job:
        def write(known: Sequence[Transition] | None = None) -> Job:
            request = job_writes.claim(reference, token=token, now=now, lease_end=lease_end, worker=worker, known=known)
            return self._updated_after_conflicts(
                Write.CLAIM, request, mine=lambda current: current.lease.owner == token
            )

        try:
            return write()
        except WriteRefusedError as refused:
            found = refused.current
            if found is None or found.generation != reference.generation or found.due is None or found.due > now:
                raise
            # Only its history is too long. An entry that another write adds now is lost with the oldest ones.
            kept = found.history[-LEAST_KEPT_AFTER_FAILURE:]
        return write(kept)

    def settle(self, job: Job, settlement: Settlement, *, now: datetime) -> Sequence[Job]:
        request = settle_requests.settle(job, settlement, now=now, retention=self._retention, indexes=self._indexes)
        if settlement.writes or settlement.follow_ups:
            return settle_with_effects(
                self._client,
                job,
                request,
                settlement,
                table=self._table,
                groups=self._groups,
                insertion=self._insertion,
            )
        self._update(Write.SETTLE, request, mine=partial(job.settled_as, settlement.state))
        return ()

    def settle_jointly(self, settlings: Sequence[Settling]) -> Sequence[TidemillError | None]:
        """`SettleJointly`."""
        from tidemill.dynamodb.batch_handlers.joint_settle import JointSettle  # noqa: PLC0415 - only batch handlers need it

        def request(each: Settling) -> Request:
            return settle_requests.settle(
                each.job, each.settlement, now=each.now, retention=self._retention, indexes=self._indexes
            )

        def alone(each: Settling) -> None:
            self.settle(each.job, each.settlement, now=each.now)

        return JointSettle(self._client, table=self._table, request=request, alone=alone).settle(settlings)

    def release(self, job: Job, *, now: datetime, due: datetime, cause: Why = Why.CONFLICT) -> None:
        request = job_writes.release(job, now=now, due=due, cause=cause)
        # Only releases by conflicts are counted.
        mine = job.released_in if cause is Why.CONFLICT else partial(job.settled_as, State.RETRYING)
        self._update(Write.RELEASE, request, mine=mine)

    def unclaim(self, reference: Reference, *, token: str, now: datetime) -> None:
        request = job_writes.unclaim(reference, token=token, now=now)
        self._update(Write.RELEASE, request, mine=lambda current: current.lease.last_owner == token)

    def checkpoint(self, job: Job, saved: Checkpoint, *, now: datetime) -> bool:
        request = run_writes.checkpoint(job, saved, now=now)
        # Only this run writes its checkpoints, so it has written this one or a later one.
        current = self._updated_after_conflicts(
            Write.CHECKPOINT, request, mine=lambda current: current.lease.owner == job.lease.owner
        )
        return current.cancel.requested_at is not None

    def record_step(self, job: Job, step: Step) -> Job:
        def mine(current: Job) -> bool:
            return current.lease.owner == job.lease.owner and current.steps.recorded == (*job.steps.recorded, step)

        return self._updated_after_conflicts(Write.STEP, run_writes.record_step(job, step), mine=mine)

    def cancel(self, job: Job, *, now: datetime, by: str = OPERATOR, reason: str = "", as_read: bool = False) -> Job:
        asked = CancelRequest(by=by, reason=reason)
        if as_read and job.state is State.RUNNING:
            request = operator_writes.request_cancel(job, asked, now=now, as_read=True)
            return self._updated(Write.CANCEL, request, mine=lambda _current: False)
        if as_read:
            return self._cancel_at_rest(job, asked, now, as_read=True)
        while True:
            try:
                return self._cancel_at_rest(job, asked, now)
            except WriteRefusedError as refused:
                if refused.current is None or refused.current.state is not State.RUNNING:
                    raise
                job = refused.current
            try:
                # All cancel requests are equal, so the condition accepts an SDK retry of it.
                return self._updated(
                    Write.CANCEL, operator_writes.request_cancel(job, asked, now=now), mine=lambda _current: False
                )
            except WriteRefusedError as refused:
                if refused.current is None:
                    raise
                job = refused.current

    def wake(self, job: Job, *, now: datetime) -> None:
        def mine(current: Job) -> bool:
            """A concurrent wake of the same job counts as success. A later job under the same key does not."""
            same = (current.created_at, current.generation) == (job.created_at, job.generation)
            return same and current.state is State.QUEUED

        self._update(Write.WAKE, operator_writes.wake(job, now=now), mine=mine)

    def park(self, job: Job, wait: Wait, *, now: datetime) -> Job:
        def mine(current: Job) -> bool:
            """A repeat of the same stream record counts as success, as does an SDK retry."""
            same = (current.created_at, current.generation) == (job.created_at, job.generation + 1)
            return same and current.state is State.PARKED

        return self._updated(Write.PARK, operator_writes.park(job, wait, now=now), mine=mine)

    def unpark(self, job: Job, *, now: datetime, due: datetime) -> None:
        def mine(current: Job) -> bool:
            """A concurrent release of the same job counts as success."""
            same = (current.created_at, current.generation) == (job.created_at, job.generation + 1)
            return same and current.state is State.QUEUED

        self._update(Write.UNPARK, operator_writes.unpark(job, now=now, due=due), mine=mine)

    def signal(self, job: Job, signal: Signal, *, wakes: bool) -> Job:
        if not allowed(Write.SIGNAL, job.state, State.QUEUED if wakes else job.state):
            raise WriteRefusedError(Write.SIGNAL, job)
        request = signal_writes.wakes(job, signal) if wakes else signal_writes.keep(job, signal)
        return self._updated(Write.SIGNAL, request, mine=lambda current: signal in current.signals.received)

    def nudge(self, job: Job, *, now: datetime, limit: timedelta, last: bool = False) -> None:
        self._update(
            Write.NUDGE,
            operator_writes.nudge(
                job, now=now, limit=limit, last=last, retention=self._retention, indexes=self._indexes
            ),
            mine=lambda current: current.generation == job.generation and current.nudges.last_at == now,
        )

    def resend(self, job: Job, *, now: datetime) -> None:
        def mine(current: Job) -> bool:
            """A concurrent resend in the same millisecond counts as success."""
            same = (current.created_at, current.generation) == (job.created_at, job.generation)
            return same and current.nudges.last_at == now

        self._update(Write.RESEND, operator_writes.resend(job, now=now), mine=mine)

    def redrive(self, job: Job, *, token: str, now: datetime, by: str, reason: str = "", edited: bool = False) -> Job:
        # The clock of the caller may be slow. What died with a batch or a flow must have died before its redrive.
        at = max(now, job.finished_at or now)
        entry = Redrive(token=token, at=at, by=by, death=job.death, reason=reason, edited=edited)

        def mine(current: Job) -> bool:
            """Also if the job has died and was redriven again since: it may still have the payload of this call."""
            return any(redrive.token == token for redrive in current.redrives)

        if job.group.key is not None:
            return self._groups.redrive(job, job.group.key, entry, mine=mine)
        return self._updated(Write.REDRIVE, operator_writes.redrive(job, entry), mine=mine)

    def undo(self, done: Job, job: Job, entry: Undone) -> Job:
        def mine(current: Job) -> bool:
            """The id is that of every undo of this job, so the time tells the calls apart."""
            return current.created_at == done.created_at and current.correction.undone == entry

        mark = undo_writes.mark_undone(done, entry)
        return self._groups.insert_with(job, self._insertion, update=mark, write=Write.UNDO, mine=mine)

    def supersede(self, earlier: Job, job: Job) -> Job:
        def mine(current: Job) -> bool:
            """Also of another submission with the key of this one. The caller compares them."""
            return current.created_at == earlier.created_at and current.correction.superseded_by == job.id

        mark = undo_writes.mark_superseded(earlier, job, retention=self._retention)
        return self._groups.insert_with(job, self._insertion, update=mark, write=Write.SUPERSEDE, mine=mine)

    def debounced_job_id(self, tenant: str, name: str) -> str | None:
        from tidemill.dynamodb.debounce import debounce_items  # noqa: PLC0415 - few jobs are debounced

        return debounce_items.job_of(self._client, tenant, name, table=self._table)

    def begin_debounce(self, job: Job, *, after: str | None) -> Job:
        from tidemill.dynamodb.debounce import debounce_items  # noqa: PLC0415 - few jobs are debounced

        return debounce_items.begin(self._client, job, self._insertion(job), after=after, table=self._table)

    def join_debounce(self, job: Job, changed: Job, *, by: str, now: datetime, replaces: bool) -> Job:
        from tidemill.dynamodb.debounce import debounce_writes  # noqa: PLC0415 - few jobs are debounced

        def mine(current: Job) -> bool:
            return current.burst is not None and current.burst.last == by

        if not allowed(Write.JOIN, job.state, changed.state):
            raise WriteRefusedError(Write.JOIN, job)
        request = debounce_writes.join(job, changed, by=by, now=now, replaces=replaces, indexes=self._indexes)
        return self._updated(Write.JOIN, request, mine=mine)

    def rewrite(self, job: Job, stored: Job) -> None:
        def mine(current: Job) -> bool:
            """Also if another migration wrote the same payload into the document.

            A location is unique, so a document that names it is of this call, even if a run has raised the generation
            since the first send. The caller deletes the payload after a refusal.
            """
            if current.created_at != job.created_at:
                return False
            if stored.payload.location is not None:
                return current.payload.location == stored.payload.location
            return (current.generation, current.payload.text) == (job.generation, stored.payload.text)

        self._update(Write.REWRITE, operator_writes.rewrite(job, stored), mine=mine)

    def advance(self, tenant: str, group: str, *, now: datetime) -> Job | None:
        return self._groups.advance(tenant, group, now=now)

    def forget(self, job: Job) -> None:
        try:
            self._write(
                self._client.delete_item, Write.FORGET, operator_writes.forget(job), mine=lambda _current: False
            )
        except WriteRefusedError as refused:
            if refused.current is not None:
                raise

    def _insertion(self, job: Job) -> Request:
        return job_writes.insert(job, indexes=self._indexes, replaces=flow_writes.replaces_blocked(job))

    def _cancel_at_rest(self, job: Job, asked: CancelRequest, now: datetime, *, as_read: bool = False) -> Job:
        def mine(current: Job) -> bool:
            """A concurrent cancel counts as success."""
            return current.state is State.CANCELLED and (not as_read or current.created_at == job.created_at)

        request = operator_writes.cancel(job, asked, now=now, retention=self._retention, as_read=as_read)
        return self._updated(Write.CANCEL, request, mine=mine)

    def _update(self, write: Write, request: Request, *, mine: Callable[[Job], bool]) -> None:
        self._write(self._client.update_item, write, request, mine=mine)

    def _updated(self, write: Write, request: Request, *, mine: Callable[[Job], bool]) -> Job:
        """Update and return the written document, which takes CPU time for each of its attributes."""
        answer = self._write(self._client.update_item, write, request | {"ReturnValues": "ALL_NEW"}, mine=mine)
        return decode(answer)

    def _updated_after_conflicts(self, write: Write, request: Request, *, mine: Callable[[Job], bool]) -> Job:
        """Update, tried again while transactions hold the job: each refuses other writes for a moment.

        A transaction that its own conditions cancel does that, too, such as another submission with the key of the job.
        """
        return retried(partial(self._updated, write, request, mine=mine))

    def _write(
        self,
        call: Callable[..., Mapping[str, Any]],
        write: Write,
        request: Request,
        *,
        mine: Callable[[Job], bool],
    ) -> Item:
        """Make the call. A refusal by a document that this call wrote is the SDK's retry of its own success."""
        try:
            with translated():
                answer = call(TableName=self._table, ReturnValuesOnConditionCheckFailure="ALL_OLD", **request)
        except ClientError as error:
            item = refusing_item(error)
            if item and mine(decode(item)):
                return item
            raise WriteRefusedError(write, decode(item) if item else None) from None
        attributes: Item = answer.get("Attributes", {})
        return attributes
