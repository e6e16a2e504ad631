"""The members of a batch: look at them, cancel them, and redrive the dead ones. Counts come from their documents."""

from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Final

from tidemill.application.batches.batches import cancel_batch
from tidemill.application.control.control import Control
from tidemill.application.groups.round_robin import in_turn
from tidemill.application.ports import BatchStore, Clock, ControlStore, NewToken
from tidemill.domain.batches.batches import Look, Page, is_batch
from tidemill.domain.errors import (
    SignalRefusedError,
    StoreUnavailableError,
    TransactionConflictError,
    WriteRefusedError,
)
from tidemill.domain.job import OWNER, Job
from tidemill.domain.records import replace
from tidemill.domain.states import State

#: Documents that a look reads before it asks for the time again: about ten calls.
_READ_TOGETHER: Final = 1_000


class BatchMembers:
    """For the job of a batch, and for readers of the counts. All of it may be repeated."""

    def __init__(self, *, store: ControlStore, batches: BatchStore, clock: Clock, new_token: NewToken) -> None:
        self._store = store
        self._control = Control(store=store, clock=clock, new_token=new_token)
        self._batches = batches
        self._clock = clock
        self._new_token = new_token

    def batch(self, tenant: str, batch_id: str) -> Job:
        """The document of the batch, with all its signals and redrives. Raises `StoreUnavailableError`."""
        batch = self._batches.get(tenant, batch_id)
        if batch is None:
            # A running job is not deleted, unless an operator does it.
            raise StoreUnavailableError(f"the document of the batch {batch_id} is gone")
        return batch

    def close(self, batch: Job) -> bool:
        """Whether no page takes another member. False while some join: close again in a moment."""
        try:
            self._batches.close(batch, now=self._clock())
        except TransactionConflictError:
            return False
        return True

    def look(self, batch: Job, *, until: datetime | None = None) -> Look:
        """The members as they are now: of the first pages at least, and of the others if the time is long enough."""
        first, *others = _parts(self._batches.pages(batch))
        look = self._look(batch, first)
        for pages in others:
            if until and self._clock() >= until:
                return replace(look, complete=False)
            look = look.with_more(self._look(batch, pages))
        return look

    def brief_look(self, batch: Job, *, most: int) -> Look | None:
        """Look at the members. None if that would read the documents of more than `most` of them."""
        pages = self._batches.pages(batch)
        return self._look(batch, pages) if sum(len(page.unfinished) for page in pages) <= most else None

    def _look(self, batch: Job, pages: Sequence[Page]) -> Look:
        now, unreadable = self._clock(), set[str]()
        found = self._batches.get_many(
            [(batch.tenant, job_id) for page in pages for job_id in sorted(page.unfinished)],
            unreadable=lambda _tenant, job_id, _error: unreadable.add(job_id),
        )
        # Another job may have replaced one that has expired.
        jobs = {job.id: job.without_contents() for job in found if job.batch == batch.id}
        return Look(at=now, pages=pages, jobs=jobs, unreadable=frozenset(unreadable))

    def record(self, batch: Job, look: Look, *, last: bool) -> None:
        """Note which members have ended, so that later looks need not read them, and count them once expired."""
        # A batch that was redriven needs its pages for longer.
        every = last or bool(batch.redrives)
        for page in look.pages:
            if (ended := look.newly_ended(page)) or every:
                self._batches.record(batch, page, ended, now=look.at, last=last)

    def cancel(self, batch: Job, live: Iterable[Job], *, until: datetime) -> None:
        """Cancel these members in the name of the owner of the batch, and batches among them with their members."""
        for job in live:
            now, reason = self._clock(), f"its batch {batch.id} was cancelled"
            # A later look finds those that changed meanwhile, or whose group is busy.
            with suppress(WriteRefusedError, SignalRefusedError, TransactionConflictError):
                if is_batch(job) and not job.lifetime.over(now):
                    self._cancel_batch(job, now, reason)
                else:
                    self._store.cancel(job, now=now, by=OWNER, reason=reason)
            if now >= until:
                return

    def _cancel_batch(self, inner: Job, now: datetime, reason: str) -> None:
        """Its run cancels its members. If it is dead, some of them are too, and it needs another run for that."""
        asked = cancel_batch(self._control, inner.tenant, inner.id, kept_dead=True)
        if asked and asked.state is State.DEAD:
            self._store.redrive(asked, token=self._new_token(), now=now, by=OWNER, reason=reason)

    def redrive(self, batch: Job, dead: Iterable[Job], *, until: datetime) -> None:
        """Redrive these members in the name of the operator or owner who redrove the batch, up to that time."""
        busy = set[str]()
        in_order = sorted(dead, key=lambda job: job.group.sequence or 0)
        for job in in_turn(in_order, lambda job: job.group.key, look=batch.generation):
            # A try takes a second, and a group that was busy a moment ago still is.
            if job.group.key in busy:
                continue
            asked, now = batch.redrives[-1], self._clock()
            # A refusal means that the job has moved on, as for a cancel.
            try:
                self._store.redrive(job, token=asked.token, now=now, by=asked.by, reason=asked.reason)
            except WriteRefusedError:
                pass
            except TransactionConflictError:
                if job.group.key is not None:
                    busy.add(job.group.key)
            if now >= until:
                return


def _parts(pages: Sequence[Page]) -> list[list[Page]]:
    """The pages in parts whose documents take a few calls to read. One part at least, and no part without documents.

    A look may have time for one part only: it must come further than the looks before it.
    """
    parts: list[list[Page]] = [[]]
    for page in pages:
        before = sum(len(each.unfinished) for each in parts[-1])
        if before and before + len(page.unfinished) > _READ_TOGETHER:
            parts.append([])
        parts[-1].append(page)
    return parts
