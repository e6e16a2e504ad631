"""Publish: send the messages that changes request, advance groups and flows, and delete payloads of deleted jobs.

It parks a job that an operator has paused, instead of sending its message. In a lane whose submissions and workers send
first messages themselves, it sends none to a job that has begun.

The stream may deliver a record twice. Each step may be repeated. A step that fails is stored as owed work, so that its
record blocks no others. A record fails only if SQS is out, or if the work cannot be stored either. A message that SQS
blames, or whose queue is missing or denied, is not sent again from the stream, even if it is alone in its batch: SQS
would refuse it each time.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import partial
from typing import Final

from tidemill.application.configuration import CurrentConfiguration, nothing_set
from tidemill.application.flow_advance import FlowAdvance
from tidemill.application.owed import Kind, OwedWork, Work
from tidemill.application.ports import Clock, Lanes, Payloads, PublishStore, Refusal
from tidemill.domain.changes import Change
from tidemill.domain.dispatch import Dispatch, dispatch, has_begun, may_be_sent
from tidemill.domain.ended_nodes import EndedNodes, ended_nodes
from tidemill.domain.error_text import error_text
from tidemill.domain.errors import WriteRefusedError
from tidemill.domain.job import Job
from tidemill.domain.job_message import Reference, reference_of
from tidemill.domain.states import State
from tidemill.domain.waiting import Cause, Wait
from tidemill.names import Lane

_AT_ONCE: Final = 8


@dataclass(frozen=True, slots=True)
class UnreadableChange:
    """A stream record that this code cannot read."""

    sequence: str
    tenant: str
    job_id: str
    error: Exception
    #: Of a job that was deleted: the location of its payload.
    payload_at: str | None = None


class PublishStep(StrEnum):
    """A step of publish, and the log message of its failure."""

    READ = "unreadable stream record"
    PARK = "job not parked"
    SEND = "message refused"
    ADVANCE = "group not advanced"
    FLOW = "flow not advanced"
    DELETE = "payload not deleted"


@dataclass(frozen=True, slots=True)
class FailedStep:
    """`work` is what the step did not do."""

    sequence: str
    step: PublishStep
    work: Work
    error: str
    #: It is stored as owed work. Otherwise the stream must deliver the record again.
    handed_over: bool

    @property
    def named(self) -> str:
        """The field of a log line that has the name of `work`."""
        return "group" if self.step is PublishStep.ADVANCE else "job_id"


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """`advanced` holds the jobs whose turn came, `failed` the sequences that the stream must deliver again."""

    sent: Sequence[Dispatch]
    advanced: Sequence[Job] = ()
    #: The jobs that a pause holds back, instead of a message.
    parked: Sequence[Job] = ()
    failed: Sequence[str] = ()
    failed_steps: Sequence[FailedStep] = ()


@dataclass(frozen=True, slots=True)
class _DueMessage:
    """The message that a change requests for its job."""

    sequence: str
    job: Job
    message: Dispatch
    #: The writer of the change may have sent the same message.
    may_be_sent: bool

    @property
    def has_turn(self) -> bool:
        return self.job.wait is not None and self.job.wait.cause in {Cause.LIMIT, Cause.BREAKER}

    @property
    def keeps_to_pauses(self) -> bool:
        return isinstance(self.message.body, Reference) and not self.has_turn and not self.job.cancel_requested_at


class Publisher:
    def __init__(
        self,
        *,
        store: PublishStore,
        payloads: Payloads,
        lanes: Lanes,
        owed: OwedWork,
        clock: Clock,
        configuration: CurrentConfiguration = nothing_set,
        first_message_lanes: Collection[Lane] = (),
        flows: Callable[[], FlowAdvance] | None = None,
    ) -> None:
        """`first_message_lanes`: those whose submissions and workers send first messages at once, as a hint.

        `flows` is called for the first node of a flow that ends. None: no flow advances.
        """
        self._flows = flows
        self._first_message_lanes = first_message_lanes
        self._configuration = configuration
        self._store = store
        self._payloads = payloads
        self._lanes = lanes
        self._owed = owed
        self._clock = clock

    def publish(self, changes: Sequence[Change], unreadable: Sequence[UnreadableChange] = ()) -> Published:
        """Send the messages, then advance the groups of ended jobs and delete the payloads of deleted jobs.

        A job that is paused gets no message: it is parked.
        """
        due = self._due_messages(changes)
        paused = self._paused(due)
        unpaused = [each for each in due if each.sequence not in paused]
        begun = self._begun(unpaused)
        sent, refused = self._send([each for each in unpaused if each.sequence not in begun])
        # If SQS took no message at all, it is out, and the stream keeps the records. If it took some, only the others
        # are stored: the stream would deliver the whole batch again, and all of them would be sent twice.
        out = [] if sent else [sequence for sequence, _, refusal in refused if not refusal.sender_fault]
        steps: list[Callable[[], Job | FailedStep | None]] = [
            *(partial(self._park, sequence, *job_and_wait) for sequence, job_and_wait in paused.items()),
            *(partial(self._unreadable, change) for change in unreadable),
            *(partial(self._refused, *refusal) for refusal in refused if refusal[0] not in out),
            *(partial(self._advance, *group, sequence) for group, sequence in _groups(changes).items()),
            *(partial(self._advance_flow, *flow, ended) for flow, ended in ended_nodes(changes).items()),
            *(partial(self._delete, change.sequence, job) for change in changes if (job := _deleted(change))),
        ]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            results = list(pool.map(lambda step: step(), steps))
        failed_steps = [result for result in results if isinstance(result, FailedStep)]
        done = [result for result in results if isinstance(result, Job)]
        failed = [*out, *(step.sequence for step in failed_steps if not step.handed_over)]
        return Published(
            sent=sent,
            advanced=[job for job in done if job.state is not State.PARKED],
            parked=[job for job in done if job.state is State.PARKED],
            failed=list(dict.fromkeys(failed)),
            failed_steps=failed_steps,
        )

    def _due_messages(self, changes: Sequence[Change]) -> list["_DueMessage"]:
        now = self._clock()
        return [
            _DueMessage(
                change.sequence,
                change.after,
                message,
                may_be_sent=may_be_sent(change.before, change.after, now=now),
            )
            for change in changes
            if change.after and (message := dispatch(change.before, change.after, now=now))
        ]

    def _paused(self, messages: Sequence["_DueMessage"]) -> dict[str, tuple[Job, Wait]]:
        """By sequence, the jobs that a pause holds back, and how each waits.

        A job that has a slot or a time of its limit, or is to probe a breaker, is sent all the same: only a worker
        passes that on to the next. So is one that was asked to end and has lost its run: a worker ends it. If the
        configuration is stale, all are sent: a worker decides by its own.
        """
        runnable = [each for each in messages if each.keeps_to_pauses]
        if not runnable:
            return {}
        configuration, now = self._configuration(), self._clock()
        if configuration.stale:
            return {}
        paused: dict[str, tuple[Job, Wait]] = {}
        for each in runnable:
            if pause := configuration.pause_of(each.job, now=now):
                line, due = pause.target.line, each.job.due
                not_before = due if due and due > now else None
                paused[each.sequence] = (
                    each.job,
                    Wait(cause=line.cause, key=line.key, since=now, not_before=not_before),
                )
        return paused

    def _begun(self, messages: Sequence["_DueMessage"]) -> Collection[str]:
        """The sequences of the jobs that have begun, by a message that was sent at once."""
        hinted = [each for each in messages if each.may_be_sent and each.message.lane in self._first_message_lanes]
        if not hinted:
            return ()
        try:
            # A batch may have several changes of a job, which is read once.
            found = self._store.get_many(list(dict.fromkeys((each.job.tenant, each.job.id) for each in hinted)))
        except Exception:  # noqa: BLE001 - the read saves messages, and its failure must not stop them
            return ()
        jobs = {(job.tenant, job.id): job for job in found}
        return {
            each.sequence
            for each in hinted
            if (job := jobs.get((each.job.tenant, each.job.id))) and has_begun(job, each.job)
        }

    def _send(self, messages: Sequence["_DueMessage"]) -> tuple[list[Dispatch], list[tuple[str, Dispatch, Refusal]]]:
        """The messages that were sent, and the ones that SQS refused, each with the sequence of its change."""
        refusals = self._lanes.send([each.message for each in messages]) if messages else ()
        refused = {refusal.index for refusal in refusals}
        return (
            [each.message for index, each in enumerate(messages) if index not in refused],
            [(messages[refusal.index].sequence, messages[refusal.index].message, refusal) for refusal in refusals],
        )

    def _park(self, sequence: str, job: Job, wait: Wait) -> Job | FailedStep | None:
        try:
            return self._store.park(job, wait, now=wait.since)
        except WriteRefusedError as refused:
            if (moved := refused.current) and _is_moved(job, moved):
                return self._park(sequence, moved, replace(wait, not_before=moved.due))
            # It has moved on, and the record of that comes, too. Or a worker runs it by an earlier message.
            return None
        except Exception as error:  # noqa: BLE001 - as in `_advance`
            work = Work(kind=Kind.DISPATCH, tenant=job.tenant, name=job.id)
            return self._hand_over(sequence, PublishStep.PARK, work, error_text(error))

    def _unreadable(self, change: UnreadableChange) -> FailedStep:
        # Nothing else finds the file of a deleted job before the bucket's rule of age.
        kind = Kind.DELETE_PAYLOAD if change.payload_at else Kind.DISPATCH
        work = Work(kind=kind, tenant=change.tenant, name=change.job_id, payload_at=change.payload_at)
        return self._hand_over(change.sequence, PublishStep.READ, work, error_text(change.error))

    def _refused(self, sequence: str, message: Dispatch, refusal: Refusal) -> FailedStep:
        reference = reference_of(message.body)
        work = Work(kind=Kind.DISPATCH, tenant=reference.tenant, name=reference.job_id)
        return self._hand_over(sequence, PublishStep.SEND, work, refusal.error)

    def _advance(self, tenant: str, group: str, sequence: str) -> Job | FailedStep | None:
        try:
            return self._store.advance(tenant, group, now=self._clock())
        except Exception as error:  # noqa: BLE001 - one failed step must not fail the other records of the batch
            work = Work(kind=Kind.ADVANCE, tenant=tenant, name=group)
            return self._hand_over(sequence, PublishStep.ADVANCE, work, error_text(error))

    def _advance_flow(self, tenant: str, flow_id: str, ended: EndedNodes) -> FailedStep | None:
        try:
            if self._flows:
                self._flows().advance(tenant, flow_id, ended.names, redriven=ended.redriven)
        except Exception as error:  # noqa: BLE001 - as above
            work = Work(kind=Kind.FLOW, tenant=tenant, name=flow_id)
            return self._hand_over(ended.sequence, PublishStep.FLOW, work, error_text(error))
        return None

    def _delete(self, sequence: str, job: Job) -> FailedStep | None:
        try:
            self._payloads.delete(job.tenant, job.id, job.payload_at)
        except Exception as error:  # noqa: BLE001 - as above
            work = Work(kind=Kind.DELETE_PAYLOAD, tenant=job.tenant, name=job.id, payload_at=job.payload_at)
            return self._hand_over(sequence, PublishStep.DELETE, work, error_text(error))
        return None

    def _hand_over(self, sequence: str, step: PublishStep, work: Work, error: str) -> FailedStep:
        try:
            self._owed.owe(work, now=self._clock(), error=error)
        except Exception as unavailable:  # noqa: BLE001 - as above; the stream keeps the record
            error = f"{error}; not stored as owed work: {error_text(unavailable)}"
            return FailedStep(sequence, step, work, error, handed_over=False)
        return FailedStep(sequence, step, work, error, handed_over=True)


def _is_moved(job: Job, current: Job) -> bool:
    """Whether only its time has changed: a debounced job, whose record of that requests no message."""
    requested = (job.created_at, job.state, job.generation)
    return requested == (current.created_at, current.state, current.generation) and job.due != current.due


def _groups(changes: Iterable[Change]) -> dict[tuple[str, str], str]:
    """The groups that may advance, each with the first of its changes: an advance moves the head as far as possible."""
    groups: dict[tuple[str, str], str] = {}
    for change in changes:
        if (job := _moves_group(change)) and job.group is not None:
            groups.setdefault((job.tenant, job.group), change.sequence)
    return groups


def _moves_group(change: Change) -> Job | None:
    """The job, if its group may advance: it ended, or it began to wait, and the head may have ended just before.

    Or it was dead and blocked its group, and an operator deleted it. Its deletion is all that is left to tell publish.
    """
    before, after = change.before, change.after
    if after is None:
        return before if before and before.state is State.DEAD and before.blocks else None
    if before and before.state is after.state:
        return None
    return after if after.state.terminal or after.state is State.WAITING else None


def _deleted(change: Change) -> Job | None:
    """The deleted job, if its payload is stored outside its document, or the job before another payload replaced it.

    A new job may replace an expired document before DynamoDB deletes it. The new job has another payload.
    """
    before, after = change.before, change.after
    kept = before and after and after.payload_at == before.payload_at
    return before if before and before.payload_at and not kept else None
