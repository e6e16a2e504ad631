"""Archive: keeps the document of each job that ends, outside of the table. The stream's second and last reader."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Protocol

from tidemill.application.dispatch.publish import UnreadableChange
from tidemill.domain.dispatch.stream_change import Change
from tidemill.domain.errors import TidemillError
from tidemill.domain.job import Job
from tidemill.names import CANARY_TYPE

_AT_ONCE: Final = 8


class ArchiveFiles(Protocol):
    """The files of the archive."""

    def write(self, job: Job) -> None:
        """Write the file of this end of the job, once: a repeat changes nothing."""


def archive(changes: Sequence[Change], unreadable: Sequence[UnreadableChange], files: ArchiveFiles) -> list[str]:
    """The sequence numbers of the records that must come again. Any may come twice."""

    def written(change: Change) -> bool:
        try:
            if job := _ended(change):
                files.write(job)
        except TidemillError:
            return False
        return True

    with ThreadPoolExecutor(_AT_ONCE) as pool:
        results = list(pool.map(written, changes))
    failed = [change.sequence for change, done in zip(changes, results, strict=True) if not done]
    return [*failed, *(change.sequence for change in unreadable)]


def _ended(change: Change) -> Job | None:
    """The job, if it ends. Not for other writes to an ended one, such as a migration. A dead one may be cancelled.

    Nor for a canary: a day has 4,320 of them, and no caller submitted them.
    """
    before, after = change.before, change.after
    if after is None or not after.state.terminal or after.type == CANARY_TYPE:
        return None
    ended = before is None or (before.state, before.finished_at) != (after.state, after.finished_at)
    return after if ended else None
