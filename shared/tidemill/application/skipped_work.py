"""What the handler of one run skips: `Run.skipped` adds a mark, and the success keeps the marks."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta

from tidemill.application.job_types import JobTypes
from tidemill.domain.errors import UnknownJobTypeError
from tidemill.domain.outcomes import Outcome, Succeeded
from tidemill.domain.skipped_work import Skipped


class SkippedWork:
    """The marks of one run. `backfill` is that of its type, and `job_types` are those that make up for it."""

    def __init__(self, backfill: Mapping[str, str], job_types: JobTypes) -> None:
        self._backfill = backfill
        self._job_types = job_types
        self._marks: dict[str, Skipped] = {}

    def skip(self, name: str) -> None:
        """`Run.skipped`. Raises `ValueError`."""
        if name not in self._backfill:
            raise ValueError(f"nothing makes up for {name!r}: name a job type for it in `backfill` of the job type")
        made_up_by = self._backfill[name]
        self._marks[name] = Skipped(name=name, type=made_up_by, retention=self._retention(made_up_by))

    def forget(self) -> None:
        """A call of the handler has failed, and another one follows."""
        self._marks.clear()

    def _retention(self, name: str) -> timedelta | None:
        """None also while the file of the type is broken: its job is a detail of a success."""
        try:
            return self._job_types.get(name).retention
        except UnknownJobTypeError:
            return None

    def marked(self, outcome: Outcome) -> Outcome:
        """The success with the marks. Any other outcome leaves the whole work to be done."""
        return replace(outcome, skipped=tuple(self._marks.values())) if isinstance(outcome, Succeeded) else outcome
