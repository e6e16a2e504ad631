"""What the handler of one run skips: `Run.skipped` adds a mark, and the success keeps the marks."""

from collections.abc import Mapping
from dataclasses import replace

from tidemill.domain.outcomes import Outcome, Succeeded
from tidemill.domain.skipped_work import Skipped


class SkippedWork:
    """The marks of one run. `backfill` is that of its type."""

    def __init__(self, backfill: Mapping[str, str]) -> None:
        self._backfill = backfill
        self._marks: dict[str, Skipped] = {}

    def skip(self, name: str) -> None:
        """`Run.skipped`. Raises `ValueError`."""
        if name not in self._backfill:
            raise ValueError(f"nothing makes up for {name!r}: name a job type for it in `backfill` of the job type")
        self._marks[name] = Skipped(name=name, type=self._backfill[name])

    def marked(self, outcome: Outcome) -> Outcome:
        """The success with the marks. Any other outcome leaves the whole work to be done."""
        return replace(outcome, skipped=tuple(self._marks.values())) if isinstance(outcome, Succeeded) else outcome
