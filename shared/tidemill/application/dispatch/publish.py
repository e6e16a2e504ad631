"""Publish: send the messages that changes of documents request, and take the steps of each feature that reacts to them.

The stream may deliver a record twice. Each step may be repeated. A step that fails is stored as owed work, so that its
record blocks no others. A record fails only if SQS is out, or if the work cannot be stored either. A message that SQS
blames, or whose queue is missing or denied, is not sent again from the stream, even if it is alone in its batch: SQS
would refuse it each time.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

from msgspec import Struct

from tidemill.application.dispatch.owed import Kind, OwedWork, Work
from tidemill.application.dispatch.reactions import DueMessage, PublishStep, Reaction, Step, Withhold
from tidemill.application.ports import Clock, Lanes, Refusal
from tidemill.domain.dispatch.dispatch import Dispatch, dispatch, may_be_sent
from tidemill.domain.dispatch.job_message import reference_of
from tidemill.domain.dispatch.stream_change import Change
from tidemill.domain.error_text import error_text
from tidemill.domain.job import Job
from tidemill.domain.states import State

_AT_ONCE: Final = 8


class UnreadableChange(Struct, frozen=True):
    """A stream record that this code cannot read."""

    sequence: str
    tenant: str
    job_id: str
    error: Exception
    #: The location of the payload of a deleted job.
    payload_at: str | None = None


class FailedStep(Struct, frozen=True):
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


class Published(Struct, frozen=True, kw_only=True):
    """`advanced` holds the jobs whose turn came, `failed` the sequences that the stream must deliver again."""

    sent: Sequence[Dispatch]
    advanced: Sequence[Job] = ()
    #: The jobs that a pause holds back, instead of a message.
    parked: Sequence[Job] = ()
    failed: Sequence[str] = ()
    failed_steps: Sequence[FailedStep] = ()


class Publisher:
    """The use case. `withholds` and `reactions` are what the features add, in the order in which they are asked."""

    def __init__(
        self,
        *,
        lanes: Lanes,
        owed: OwedWork,
        clock: Clock,
        withholds: Sequence[Withhold] = (),
        reactions: Sequence[Reaction] = (),
    ) -> None:
        self._lanes = lanes
        self._owed = owed
        self._clock = clock
        self._withholds = withholds
        self._reactions = reactions

    def publish(self, changes: Sequence[Change], unreadable: Sequence[UnreadableChange] = ()) -> Published:
        """Send the messages, then take the steps of the reactions, several at once."""
        due, instead = self._withheld(self._due_messages(changes))
        sent, refused = self._send(due)
        # If SQS took no message at all, it is out, and the stream keeps the records. If it took some, only the others
        # are stored: the stream would deliver the whole batch again, and all of them would be sent twice.
        out = [] if sent else [sequence for sequence, _, refusal in refused if not refusal.sender_fault]
        reactions = [step for react in self._reactions for step in react(changes)]
        steps: list[Callable[[], Job | FailedStep | None]] = [
            *(partial(self._take, step) for step in instead),
            *(partial(self._unreadable, change) for change in unreadable),
            *(partial(self._refused, *refusal) for refusal in refused if refusal[0] not in out),
            *(partial(self._take, step) for step in reactions),
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

    def _due_messages(self, changes: Sequence[Change]) -> list[DueMessage]:
        now = self._clock()
        return [
            DueMessage(
                change.sequence,
                change.after,
                message,
                may_be_sent=may_be_sent(change.before, change.after, now=now),
            )
            for change in changes
            if change.after and (message := dispatch(change.before, change.after, now=now))
        ]

    def _withheld(self, due: list[DueMessage]) -> tuple[list[DueMessage], list[Step]]:
        """The messages that are to be sent, and the steps to take instead of the others."""
        instead: list[Step] = []
        for withhold in self._withholds:
            withheld = withhold(due)
            instead += [step for step in withheld.values() if step]
            due = [each for each in due if each.sequence not in withheld]
        return due, instead

    def _send(self, messages: Sequence[DueMessage]) -> tuple[list[Dispatch], list[tuple[str, Dispatch, Refusal]]]:
        """The messages that were sent, and the ones that SQS refused, each with the sequence of its change."""
        refusals = self._lanes.send([each.message for each in messages]) if messages else ()
        refused = {refusal.index for refusal in refusals}
        return (
            [each.message for index, each in enumerate(messages) if index not in refused],
            [(messages[refusal.index].sequence, messages[refusal.index].message, refusal) for refusal in refusals],
        )

    def _take(self, step: Step) -> Job | FailedStep | None:
        try:
            return step.do()
        except Exception as error:  # noqa: BLE001 - one failed step must not fail the other records of the batch
            return self._hand_over(step.sequence, step.name, step.work, error_text(error))

    def _unreadable(self, change: UnreadableChange) -> FailedStep:
        # Nothing else finds the file of a deleted job before the bucket's rule of age.
        kind = Kind.DELETE_PAYLOAD if change.payload_at else Kind.DISPATCH
        work = Work(kind=kind, tenant=change.tenant, name=change.job_id, payload_at=change.payload_at)
        return self._hand_over(change.sequence, PublishStep.READ, work, error_text(change.error))

    def _refused(self, sequence: str, message: Dispatch, refusal: Refusal) -> FailedStep:
        reference = reference_of(message.body)
        work = Work(kind=Kind.DISPATCH, tenant=reference.tenant, name=reference.job_id)
        return self._hand_over(sequence, PublishStep.SEND, work, refusal.error)

    def _hand_over(self, sequence: str, step: PublishStep, work: Work, error: str) -> FailedStep:
        try:
            self._owed.owe(work, now=self._clock(), error=error)
        except Exception as unavailable:  # noqa: BLE001 - as above; the stream keeps the record
            error = f"{error}; not stored as owed work: {error_text(unavailable)}"
            return FailedStep(sequence, step, work, error, handed_over=False)
        return FailedStep(sequence, step, work, error, handed_over=True)
