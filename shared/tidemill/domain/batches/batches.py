"""A batch: jobs that are counted together, and the jobs that come into being once all of them are at rest. Pure.

The batch is a job itself. Its members are listed on pages, and decision 26 says why.
"""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, ClassVar, Final

from msgspec import Struct, field

from tidemill.domain.attempt.return_values import GiveUp
from tidemill.domain.batches.composite_cancels import CANCELLED
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.spans import pause_after
from tidemill.domain.states import FINAL_STATES, State
from tidemill.domain.submission.submission import DerivedKey, PinnedSubmission, Submission
from tidemill.names import BATCH_TYPE

#: Jobs of one batch.
LARGEST_JOB_COUNT: Final = 10_000
#: The pages of a batch. All versions of the code must agree on it.
PAGES: Final = 32
#: The ids of jobs choose their pages. With 10,000 of them the mean page has 313, and this is six standard deviations
#: more: one batch of 10,000 in ten million has a page that refuses a job.
MOST_ON_PAGE: Final = 420
#: A batch that is not closed by then closes by itself.
LONGEST_OPEN: Final = timedelta(days=30)
#: The name of the signal that closes a batch. It follows the one that cancels the batch as a whole.
CLOSED: Final = "closed"
ON_SUCCESS: Final = "on_success"
ON_FAILURE: Final = "on_failure"
ON_COMPLETE: Final = "on_complete"
CALLBACKS: Final = (ON_SUCCESS, ON_FAILURE, ON_COMPLETE)
#: In the counts: a member whose document was deleted before a look saw its end, and one that this code cannot read.
MISSING: Final = "missing"
UNREADABLE: Final = "unreadable"
#: A read of many items may see a page before a job that the same transaction wrote, so a missing job is believed only
#: so long after the pages were closed. No transaction takes that long.
_TRUSTED_AFTER: Final = timedelta(minutes=1)
#: A look is recorded within the run that made it, which takes 15 minutes at most. The rest is for the clocks.
_RECORDED_WITHIN: Final = timedelta(minutes=20)
_SHORTEST_PAUSE: Final = timedelta(seconds=2)
_LONGEST_PAUSE: Final = timedelta(minutes=15)
#: For each job that has not ended, which each look reads. Above 1,800 of them, this is longer.
_PAUSE_OF_JOB: Final = timedelta(milliseconds=500)


class Batch(Struct, frozen=True, kw_only=True):
    """Up to 10,000 jobs, and the jobs to submit once all of them are at rest. A callback has no time and no key."""

    #: If no job of the batch is dead; after a redrive, too.
    on_success: Submission | None = None
    #: The first time that some are dead.
    on_failure: Submission | None = None
    #: The first time that all are at rest.
    on_complete: Submission | None = None
    #: Idempotency key: openings of a tenant with the same key make one batch.
    key: str | None = None
    #: The open batch that this one is a job of.
    batch: str | None = None
    tags: Sequence[str] = ()

    @property
    def callbacks(self) -> Mapping[str, Submission]:
        each = {ON_SUCCESS: self.on_success, ON_FAILURE: self.on_failure, ON_COMPLETE: self.on_complete}
        return {name: callback for name, callback in each.items() if callback is not None}


class Opening(DerivedKey, frozen=True, kw_only=True):
    """The submission of the job of a batch."""

    carries: ClassVar[str | None] = BATCH_TYPE
    built: ClassVar[bool] = True
    #: What a repeated opening has in common: without the facts of the job types, which a deployment may change.
    asked: Mapping[str, Any]

    def identity(self, payload: Mapping[str, Any]) -> Mapping[str, Any]:  # noqa: ARG002 - it holds facts of job types
        """Return `asked` as decoded JSON: a program may give names of members that are not text."""
        decoded: Mapping[str, Any] = json.loads(json.dumps(self.asked))
        return decoded


class Callback(PinnedSubmission, frozen=True, kw_only=True):
    """The submission of a callback, with the facts of its type at the opening. It counts hops from its batch on."""

    #: One of `CALLBACKS`. Its id follows from it.
    name: str

    @property
    def callback(self) -> str:
        return self.name


class BatchFailed(GiveUp, frozen=True):
    """Returned by the handler of batches alone: the batch dies, and these jobs commit with its death."""

    then: Sequence[Submission] = ()
    #: JSON.
    checkpoint: Any = None


class Page(Struct, frozen=True, kw_only=True):
    """A part of the members of a batch."""

    number: int
    members: frozenset[str] = frozenset()
    #: Those that a look has seen in one of the final states. A subset of `members`.
    ended: Mapping[State, frozenset[str]] = field(default_factory=dict)
    #: No job joins it any more.
    closed: bool = False

    @property
    def unfinished(self) -> frozenset[str]:
        return self.members.difference(*self.ended.values())


class Look(Struct, frozen=True, kw_only=True):
    """The members of a batch as they were at one moment: `pages`, and the documents of the unfinished ones."""

    at: datetime
    pages: Sequence[Page]
    #: Whether these are all pages. The others may be left out if the time is short.
    complete: bool = True
    jobs: Mapping[str, Job]
    unreadable: frozenset[str] = frozenset()

    @property
    def counts(self) -> dict[str, int]:
        """The members by state."""
        counts: Counter[str] = Counter()
        for page in self.pages:
            counts.update({state: len(ids) for state, ids in page.ended.items()})
            counts.update(map(self._state, page.unfinished))
        return {state: counts[state] for state in sorted(counts) if counts[state]}

    @property
    def total(self) -> int:
        return sum(len(page.members) for page in self.pages)

    @property
    def failed(self) -> int:
        return sum(self.counts.get(state, 0) for state in (State.DEAD, MISSING))

    @property
    def live(self) -> int:
        """Those that are not at rest."""
        at_rest = (*FINAL_STATES, State.DEAD, MISSING)
        return self.total - sum(self.counts.get(state, 0) for state in at_rest)

    def with_more(self, more: "Look") -> "Look":
        """With other pages, which were read a moment later."""
        jobs, unreadable = {**self.jobs, **more.jobs}, self.unreadable | more.unreadable
        return replace(self, pages=[*self.pages, *more.pages], jobs=jobs, unreadable=unreadable)

    def newly_ended(self, page: Page) -> dict[State, frozenset[str]]:
        """The members of the page that this look is the first to see in a final state.

        While the page takes members, without those whose document expires before this can be recorded: the key may be
        submitted again by then, and the new job must not count as ended.
        """
        soon = self.at + _RECORDED_WITHIN
        found = [job for name in page.unfinished if (job := self.jobs.get(name))]
        to_stay = [job for job in found if page.closed or not job.lifetime.over(soon)]
        ended = {state: frozenset(job.id for job in to_stay if job.state is state) for state in FINAL_STATES}
        return {state: ids for state, ids in ended.items() if ids}

    def at_rest(self, sealed_at: datetime) -> bool:
        """Whether all members are, of a batch whose pages were closed at that time."""
        trusted = MISSING not in self.counts or self.at >= sealed_at + _TRUSTED_AFTER
        return self.complete and not self.live and trusted

    def _state(self, job_id: str) -> str:
        job = self.jobs.get(job_id)
        return job.state if job else UNREADABLE if job_id in self.unreadable else MISSING


def closed_at(batch: Job, *, now: datetime) -> datetime | None:
    """When the batch was closed; None while it is open."""
    if signal := next((each for each in batch.signals.received if each.name in {CLOSED, CANCELLED}), None):
        return signal.at
    by_itself = batch.created_at + LONGEST_OPEN
    return by_itself if by_itself <= now else None


def is_batch(job: Job) -> bool:
    return job.type == BATCH_TYPE


def is_cancelling(job: Job) -> bool:
    """Whether the job is a batch that has all that it needs to cancel its members."""
    names = {signal.name for signal in job.signals.received}
    return is_batch(job) and job.state is not State.DEAD and {CANCELLED, CLOSED} <= names


def to_redrive(batch: Job, jobs: Iterable[Job], *, now: datetime) -> list[Job]:
    """The members that were dead at the last redrive of the batch, and have not been redriven since.

    One that has expired stays dead: no redrive takes it, although DynamoDB deletes it days late.
    """
    if not batch.redrives:
        return []
    asked = batch.redrives[-1]
    dead = (job for job in jobs if job.state is State.DEAD and not job.lifetime.over(now))
    return [job for job in dead if job.was_dead_at(asked)]


def pause(batch: Job, closed: datetime, *, live: int, now: datetime) -> timedelta:
    """The time between two looks: it grows with the time since the close, or since a redrive."""
    since = max([closed, *(redrive.at for redrive in batch.redrives)])
    return pause_after(now - since, shortest=_SHORTEST_PAUSE, longest=_LONGEST_PAUSE, costs=live * _PAUSE_OF_JOB)
