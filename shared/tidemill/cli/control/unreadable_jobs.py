"""The jobs that a command cannot read: each is named once, the others go on, and the command fails in the end."""

import threading

from tidemill.application.ports import UnreadableItem
from tidemill.cli.errors import CommandError, report_unreadable, report_unreadable_item
from tidemill.cli.formatting import count
from tidemill.domain.errors import TidemillError


class UnreadableJobs:
    """A command may read a job several times, for its plan and for the change."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._keys: set[str] = set()

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, job_id: str) -> bool:
        return any(key.rpartition("#")[2] == job_id for key in self._keys)

    @property
    def counts(self) -> dict[str, int]:
        """Empty without any."""
        return {"unreadable": len(self)} if self._keys else {}

    def job(self, tenant: str, job_id: str, error: TidemillError) -> None:
        """Report an unreadable job."""
        if self._is_new(f"{tenant}#{job_id}"):
            report_unreadable(tenant, job_id, error)

    def item(self, item: UnreadableItem) -> None:
        """Report an unreadable item."""
        if self._is_new(item.key):
            report_unreadable_item(item)

    def raise_for_any(self) -> None:
        """Raises `CommandError` if a job could not be read."""
        if self._keys:
            raise CommandError(
                f"{count(len(self), 'job')} could not be read, and stay as they are",
                remedy="The lines above name each and the reason.",
            )

    def _is_new(self, key: str) -> bool:
        with self._lock:
            known = key in self._keys
            self._keys.add(key)
        return not known
