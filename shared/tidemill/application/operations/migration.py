"""Migration: rewrites the payloads of one job type with a function of the app. A run goes on where the last ended.

Both versions of the code run meanwhile, so each write is conditional on the generation, the state and the payload that
were read. A job that runs, or has changed since it was read, is left to the next pass. The function must accept its own
result: the new version already submits payloads in the new form, and a run that was killed repeats some jobs.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import asdict

from tidemill.application.job_filter import JobFilter
from tidemill.application.job_types import JobTypes
from tidemill.application.passes.job_search import JobScan, JobSearch
from tidemill.application.passes.job_walk import JobWalk, WalkProgress
from tidemill.application.passes.pace import Pace
from tidemill.application.ports import Clock, MigrationStore, Payloads, UnreadableItem
from tidemill.application.submission.checked_submission import hash_of
from tidemill.application.submission.validation import read_payload
from tidemill.domain.error_text import error_text
from tidemill.domain.errors import (
    PayloadTooLargeError,
    StoreUnavailableError,
    TidemillError,
    TransactionConflictError,
    WriteRefusedError,
)
from tidemill.domain.job import Job
from tidemill.domain.job_parts import StoredPayload
from tidemill.domain.records import replace
from tidemill.domain.states import TERMINAL, State
from tidemill.names import LARGEST_BODY_BYTES

#: A payload to the new payload, both as decoded JSON objects.
Change = Callable[[dict[str, Any]], dict[str, Any]]
#: Called with the tenant, the id and the error of each job whose payload cannot be migrated.
Failed = Callable[[str, str, str], None]

#: Jobs that still run after so many passes are reported.
MOST_PASSES: Final = 10
#: Between two passes.
LONGEST_PAUSE: Final = timedelta(hours=1)
_EXAMPLES: Final = 3
_FAILURES: Final = 5
_LONGEST_TEXT: Final = 200
#: The progress is a checkpoint of at most 8 KiB, as JSON, with a cursor of at most 2 KiB.
_LARGEST_BYTES: Final = 7 * 1024


class Migration(Struct, frozen=True, kw_only=True):
    type: str
    #: The ended jobs instead of the live ones.
    ended: bool
    #: Counts, and writes nothing.
    dry_run: bool

    @property
    def wanted(self) -> JobFilter:
        states = [state for state in State if (state in TERMINAL) is self.ended]
        return JobFilter(types=(self.type,), states=states)


class Progress(WalkProgress, frozen=True, kw_only=True):
    """The present pass. Only `rewritten` counts all passes."""

    #: From 1.
    number: int = 1
    #: Payloads written, or in a dry run those that would be.
    rewritten: int = 0
    unchanged: int = 0
    failed: int = 0
    #: Jobs that run, or changed since they were read.
    left: int = 0
    #: The first payloads before and after, and the first failures, shortened.
    examples: tuple[Mapping[str, str], ...] = ()
    failures: tuple[Mapping[str, str], ...] = ()

    @property
    def seen(self) -> int:
        return self.rewritten + self.unchanged + self.failed + self.left

    def next_pass(self) -> "Progress":
        return Progress(number=self.number + 1, rewritten=self.rewritten, examples=self.examples)

    def as_json(self) -> dict[str, Any]:
        value = asdict(self)
        for name in ("examples", "failures"):
            value[name] = list(value[name])
            while value[name] and len(json.dumps(value)) > _LARGEST_BYTES:
                value[name].pop()
        return value

    @classmethod
    def of_json(cls, value: Mapping[str, Any]) -> "Progress":
        lists = {name: tuple(value[name]) for name in ("examples", "failures") if name in value}
        return cls(**{**value, **lists})


class Migrator:
    """Each run may be repeated, and two may work at once."""

    def __init__(
        self,
        *,
        store: MigrationStore,
        payloads: Payloads,
        scan: JobScan,
        reads: Pace,
        jobs: Pace,
        job_types: JobTypes,
        clock: Clock,
    ) -> None:
        """`reads` bounds the read units of the scan, and `jobs` the jobs."""
        self._store = store
        self._payloads = payloads
        self._scan = scan
        self._search = JobSearch(scan, reads)
        self._walk = JobWalk(jobs=jobs, clock=clock)
        self._job_types = job_types
        self._clock = clock

    def run(
        self,
        migration: Migration,
        change: Change,
        progress: Progress,
        *,
        time_left: Callable[[], timedelta],
        save: Callable[[Progress], None],
        failed: Failed,
    ) -> Progress:
        """Go on with a pass until it is complete, or no time is left."""
        steps = self._search.steps(migration.wanted, now=self._clock(), after=progress.cursor, time_left=time_left)
        return self._walk.run(
            steps,
            progress,
            see=lambda seen, found: self._migrated(migration, change, seen, found, failed),
            cursor_after=self._scan.cursor_after,
            time_left=time_left,
            save=save,
        )

    def _migrated(
        self, migration: Migration, change: Change, progress: Progress, job: Job | UnreadableItem, failed: Failed
    ) -> Progress:
        """The progress after this job."""
        if isinstance(job, UnreadableItem):
            return _failure(progress, "", job.key, str(job.error), failed)
        if job.state is State.RUNNING:
            return replace(progress, left=progress.left + 1)
        try:
            before = self._payloads.load(job)
            # The document of a skipped or blocked node only records that it has no job. A start writes it anew.
            after = None if job.flow and job.flow.mark else self._changed(job.type, change, before)
            if after is None:
                return replace(progress, unchanged=progress.unchanged + 1)
            if not migration.dry_run and not self._rewritten(job, after):
                return replace(progress, left=progress.left + 1)
        except StoreUnavailableError:
            raise  # the next run begins with this job
        except Exception as error:  # noqa: BLE001 - the function is the app's, and one job must not stop the others
            return _failure(progress, job.tenant, job.id, error_text(error), failed)
        example = {"id": job.id, "before": _short(before), "after": _short(after)}
        return replace(progress, rewritten=progress.rewritten + 1, examples=(*progress.examples, example)[:_EXAMPLES])

    def _changed(self, type_: str, change: Change, before: str) -> str | None:
        """The new payload. None if it is the same."""
        text, value = read_payload(change(json.loads(before)))
        if len(text) > LARGEST_BODY_BYTES:
            raise PayloadTooLargeError(len(text), LARGEST_BODY_BYTES)
        _, again = read_payload(change(json.loads(text)))
        # `==` would take 1, 1.0 and true for equal.
        if hash_of(again) != hash_of(value):
            raise NotRepeatableError("the function changes its own result again")
        self._job_types.get(type_).parse(text)
        return None if hash_of(value) == hash_of(json.loads(before)) else text

    def _rewritten(self, job: Job, payload: str) -> bool:
        """False if the job has changed since it was read, or a transaction holds it."""
        stored = self._payloads.put_away(replace(job, payload=StoredPayload(text=payload)), now=self._clock())
        try:
            self._store.rewrite(job, stored)
        except WriteRefusedError:
            self._payloads.delete(job.tenant, job.id, stored.payload.location)
            return False
        except TransactionConflictError:
            # The SDK may have sent the write twice, and the first may be applied. So the payload stays. If it is an
            # orphan, reconcile deletes an item, and the bucket's own rule of age a file.
            return False
        # No run has it: a claim would have refused the write. A reader that read the document before may miss it.
        # A repeat skips the job, so it would not delete what stays now.
        self._payloads.delete(job.tenant, job.id, job.payload.location)
        return True


class NotRepeatableError(TidemillError):
    """A payload that was already migrated would be migrated again."""


def _failure(progress: Progress, tenant: str, job_id: str, error: str, failed: Failed) -> Progress:
    failed(tenant, job_id, error)
    failure = {"tenant": _short(tenant), "id": _short(job_id), "error": _short(error)}
    failures: Sequence[Mapping[str, str]] = (*progress.failures, failure)[:_FAILURES]
    return replace(progress, failed=progress.failed + 1, failures=tuple(failures))


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else text[: _LONGEST_TEXT - 1] + "…"
