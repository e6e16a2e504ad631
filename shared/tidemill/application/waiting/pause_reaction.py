"""Publish parks a job that an operator has paused, instead of sending its message."""

from collections.abc import Mapping, Sequence
from functools import partial

from tidemill.application.configuration import CurrentConfiguration
from tidemill.application.dispatch.owed import Kind, Work
from tidemill.application.dispatch.reactions import DueMessage, PublishStep, Step
from tidemill.application.ports import Clock, PublishStore
from tidemill.domain.dispatch.job_message import Reference
from tidemill.domain.errors import WriteRefusedError
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.waiting.waiting import Cause, Wait


class PauseReaction:
    """`Withhold`: holds back the messages of paused jobs.

    A job that has a slot or a time of its limit, or is to probe a breaker, is sent all the same: only a worker passes
    that on to the next. So is one that was asked to end and has lost its run: a worker ends it. If the configuration is
    stale, all are sent: a worker decides by its own.
    """

    def __init__(self, *, store: PublishStore, clock: Clock, configuration: CurrentConfiguration) -> None:
        self._store = store
        self._clock = clock
        self._configuration = configuration

    def __call__(self, messages: Sequence[DueMessage]) -> Mapping[str, Step]:
        runnable = [each for each in messages if _keeps_to_pauses(each)]
        if not runnable:
            return {}
        configuration, now = self._configuration(), self._clock()
        if configuration.stale:
            return {}
        parked: dict[str, Step] = {}
        for each in runnable:
            if pause := configuration.pause_of(each.job, now=now):
                line, due = pause.target.line, each.job.due
                not_before = due if due and due > now else None
                wait = Wait(cause=line.cause, key=line.key, since=now, not_before=not_before)
                work = Work(kind=Kind.DISPATCH, tenant=each.job.tenant, name=each.job.id)
                parked[each.sequence] = Step(each.sequence, PublishStep.PARK, work, partial(self._park, each.job, wait))
        return parked

    def _park(self, job: Job, wait: Wait) -> Job | None:
        try:
            return self._store.park(job, wait, now=wait.since)
        except WriteRefusedError as refused:
            if (moved := refused.current) and _is_moved(job, moved):
                return self._park(moved, replace(wait, not_before=moved.due))
            # It has moved on, and the record of that comes, too. Or a worker runs it by an earlier message.
            return None


def _keeps_to_pauses(due: DueMessage) -> bool:
    has_turn = due.job.wait is not None and due.job.wait.cause in {Cause.LIMIT, Cause.BREAKER}
    return isinstance(due.message.body, Reference) and not has_turn and not due.job.cancel.requested_at


def _is_moved(job: Job, current: Job) -> bool:
    """Whether only its time has changed: a debounced job, whose record of that requests no message."""
    requested = (job.created_at, job.state, job.generation)
    return requested == (current.created_at, current.state, current.generation) and job.due != current.due
