"""The protocol of groups, stated once more: what each caller reads, in which order, and what it writes in one step.

Each caller is a generator. It yields a read and gets the item (None if it does not exist), or yields a write and gets
nothing: a write that is refused begins the caller anew. Use none of the shipped code here.
"""

from collections.abc import Generator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple


class JobState(StrEnum):
    WAITING = "waiting"
    #: Queued, scheduled, running or retrying.
    LIVE = "live"
    SUCCEEDED = "succeeded"
    DEAD = "dead"
    CANCELLED = "cancelled"


class Job(NamedTuple):
    state: JobState
    sequence: int


class Head(NamedTuple):
    """`job` is the index of a job. An idle head may be deleted at any time."""

    sequence: int = 0
    job: int | None = None
    idle: bool = True


class Read(NamedTuple):
    item: str
    #: The number of the position, or the index of the job.
    number: int = 0


class Write(NamedTuple):
    """One transaction. Head and tail must be as the caller read them; a job must be in the state `was`."""

    #: The new items by name: "head", "tail". A tail of None is deleted.
    items: tuple[tuple[str, Any], ...] = ()
    #: The position of a job that begins to wait.
    place: int | None = None
    #: The positions that the head passes.
    passed: tuple[int, ...] = ()
    #: The index of the job, the state that it must have (None: a new job), and the job as it will be.
    job: tuple[int | None, JobState | None, Job] | None = None
    #: A conflict with another transaction ends the caller without an error.
    may_be_lost: bool = False
    #: The caller begins anew afterwards.
    again: bool = False


Caller = Generator[Read | Write, Any, None]


@dataclass(frozen=True)
class Protocol:
    """The protocol, and its mutated variants: each flag is a rule, and False breaks it."""

    #: A dead job at the head blocks its group.
    blocks: bool = False
    entry_advances: bool = True
    first_waiter_renews_head: bool = True
    redrive_renews_head: bool = True
    leave_compares_tail: bool = True
    #: Without a position behind the head but with a tail ahead of it, something has changed: read again.
    leave_reads_again: bool = True
    idle_deletes_tail: bool = True
    turn_needs_waiting: bool = True

    def enter(self, index: int | None, was: JobState | None) -> Caller:
        """A submission, or the redrive of a job that its group has passed."""
        tail = yield Read("tail")
        if tail is not None:
            waiting = Job(JobState.WAITING, tail + 1)
            yield Write((("tail", tail + 1),), place=tail + 1, job=(index, was, waiting))
            return
        head = (yield Read("head")) or Head()
        turn = head.sequence + 1
        if head.idle:
            # The index of a new job is known when it is written.
            yield Write((("head", Head(turn, index, idle=False)),), job=(index, was, Job(JobState.LIVE, turn)))
            return
        renewed = (("head", head),) if self.first_waiter_renews_head else ()
        yield Write((*renewed, ("tail", turn)), place=turn, job=(index, was, Job(JobState.WAITING, turn)))

    def redrive(self, index: int) -> Caller:
        job = yield Read("job", index)
        if job.state is not JobState.DEAD:
            return
        head = (yield Read("head")) or Head()
        if (head.job, head.sequence) != (index, job.sequence):
            yield from self.enter(index, JobState.DEAD)
            return
        renewed = (("head", head),) if self.redrive_renews_head else ()
        yield Write(renewed, job=(index, JobState.DEAD, job._replace(state=JobState.LIVE)))

    def advance(self) -> Caller:
        """One step. The code passes some cancelled jobs in one; the model passes one, to keep histories small."""
        head = (yield Read("head")) or Head()
        if head.idle:
            return
        if head.job is not None:
            job = yield Read("job", head.job)
            at_head = job.sequence == head.sequence
            if at_head and (
                job.state in (JobState.LIVE, JobState.WAITING) or (self.blocks and job.state is JobState.DEAD)
            ):
                return
        turn = head.sequence + 1
        index = yield Read("place", turn)
        if index is None:
            yield from self._leave(head)
            return
        job = yield Read("job", index)
        if job == Job(JobState.WAITING, turn):
            was = JobState.WAITING if self.turn_needs_waiting else None
            moved = Head(turn, index, idle=False)
            yield Write((("head", moved),), passed=(turn,), job=(index, was, Job(JobState.LIVE, turn)))
        else:
            yield Write((("head", Head(turn, None, idle=False)),), passed=(turn,), again=True)

    def _leave(self, head: Head) -> Caller:
        tail = yield Read("tail")
        if tail is not None and tail != head.sequence and self.leave_compares_tail:
            if self.leave_reads_again:
                yield Write(again=True)
            return
        idle = (("head", Head(head.sequence, None, idle=True)),)
        gone = (("tail", None),) if tail is not None and self.idle_deletes_tail else ()
        yield Write((*idle, *gone), may_be_lost=True)
