"""Job walk: works through the jobs that a scan or a listing finds. A run goes on where the last ended."""

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Final, TypeVar

from msgspec import Struct

from tidemill.application.passes.job_search import FoundPage
from tidemill.application.passes.pace import Pace
from tidemill.application.ports import Clock, UnreadableItem
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.spans import is_within

#: How often a run saves its progress.
_SAVE_INTERVAL: Final = timedelta(seconds=5)


class WalkProgress(Struct, frozen=True, kw_only=True):
    #: Where to go on. None before the first job, and once the walk is complete.
    cursor: str | None = None
    complete: bool = False


P = TypeVar("P", bound=WalkProgress)


class JobWalk:
    """`jobs` bounds the jobs per second."""

    def __init__(self, *, jobs: Pace, clock: Clock) -> None:
        self._jobs = jobs
        self._clock = clock

    def run(
        self,
        pages: Iterable[FoundPage],
        progress: P,
        *,
        see: Callable[[P, Job | UnreadableItem], P],
        cursor_after: Callable[[Job], str],
        time_left: Callable[[], timedelta],
        save: Callable[[P], None],
    ) -> P:
        """Go on until all pages are read, or no time is left. `see` handles one item, and counts it."""
        saved_at = self._clock()
        for page in pages:
            # With what was seen since the cursor, which comes again unless the cursor moves past it.
            seen = progress
            for found in page.found:
                if isinstance(found, UnreadableItem):
                    seen = see(seen, found)
                    continue
                if not self._jobs.spend(1, within=time_left()):
                    return progress
                progress = seen = replace(see(seen, found), cursor=cursor_after(found))
                if not is_within(_SAVE_INTERVAL, since=saved_at, now=self._clock()):
                    save(progress)
                    saved_at = self._clock()
            progress = replace(seen, cursor=page.cursor, complete=page.cursor is None)
        return progress
