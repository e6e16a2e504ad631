"""A debounced submission becomes part of the job of its burst, or begins a burst. `Debouncer` inserts it."""

import json
from datetime import datetime, timedelta
from typing import Final
from uuid import NAMESPACE_OID, uuid5

from tidemill.application.job_types import JobType
from tidemill.application.submission.checked_submission import CheckedSubmission, hash_of, timed
from tidemill.application.submission.new_jobs import Accepted, Insert
from tidemill.application.submission.placements import Placement
from tidemill.application.submission.validation import NAME_RULE, Check, is_name
from tidemill.domain.debounce.debounce import longest, quiet_after
from tidemill.domain.debounce.debounce_record import DebounceWindow
from tidemill.domain.errors import Fault, InvalidPayloadError
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.submission.submission import Submission
from tidemill.domain.time_constants import LONGEST_SPAN

_NAMES: Final = uuid5(NAMESPACE_OID, "tidemill.burst")


def debounce_rule(submission: Submission, job_type: JobType, _now: datetime) -> list[Check]:
    debounce, most = submission.debounce, submission.debounce_max
    if debounce is None:
        needs = "needs debounce_seconds"
        return [
            (submission.debounce_key is None, "/debounce_key", needs),
            (most is None, "/debounce_max_seconds", needs),
            (submission.replace is None, "/replace", needs),
        ]
    # What says when the job begins, or to which other job it belongs.
    others = {
        "idempotency_key": submission.key,
        "unique": submission.unique or job_type.unique,
        "group": submission.group,
        "batch": submission.batch,
        "supersedes": submission.supersedes,
        "delay_seconds": submission.delay,
        "run_at": submission.run_at,
        "deadline": submission.deadline,
    }
    days = LONGEST_SPAN.days
    in_range = timedelta(0) <= debounce <= LONGEST_SPAN
    # A debounce out of range is one fault, with any maximum.
    shortest = debounce if in_range else timedelta(0)
    return [
        *((value is None, f"/{name}", "not possible with debounce_seconds") for name, value in others.items()),
        (in_range, "/debounce_seconds", f"must be 0 to {days} days"),
        (
            most is None or shortest <= most <= LONGEST_SPAN,
            "/debounce_max_seconds",
            f"must be at least debounce_seconds, and at most {days} days",
        ),
        (submission.debounce_key is None or is_name(submission.debounce_key), "/debounce_key", NAME_RULE),
        (submission.replace in (None, "payload"), "/replace", "must be `payload`"),
        (
            submission.replace is None or submission.debounce_key is not None,
            "/debounce_key",
            "must be given with replace: without it, the payload is the debounce key",
        ),
    ]


class DebouncePlacement(Placement):
    """`insert` is `Debouncer.accept`. None where no job can be debounced."""

    def __init__(self, insert: Insert | None) -> None:
        self._insert = insert

    def place(self, job: Job, checked: CheckedSubmission) -> Job:
        submission, now = checked.submission, checked.now
        if submission.debounce is None:
            return job
        if submission.debounce:
            job = timed(job, checked, run_at=quiet_after(now, submission.debounce))
        return replace(job, burst=_debounce_window_of(checked, submission.debounce))

    def holds(self, job: Job) -> bool:
        return job.burst is not None

    def serial_key(self, job: Job) -> str | None:
        return f"burst {job.burst.name}" if job.burst else None

    def follow_up_fault(self, submission: Submission) -> Fault | None:
        return None if submission.debounce is None else Fault("/debounce_seconds", "a follow-up job is not debounced")

    def insert(self, job: Job) -> Accepted:
        if self._insert is None:
            raise InvalidPayloadError([Fault("/debounce_seconds", "is not possible here")])
        return self._insert(job)


def _debounce_window_of(checked: CheckedSubmission, debounce: timedelta) -> DebounceWindow:
    """The window of the burst that the submission begins, if no job of an earlier one takes it."""
    submission, key = checked.submission, checked.submission.debounce_key
    by = ["key", key] if key is not None else ["payload", hash_of(checked.value)]
    return DebounceWindow(
        # The same for all submissions that may become one job.
        name=str(uuid5(_NAMES, json.dumps([checked.tenant, submission.type, *by]))),
        key=key,
        until=quiet_after(checked.now, submission.debounce_max or longest(debounce)),
        sent_for=quiet_after(checked.now, debounce),
        last="",
        replaces=submission.replace is not None,
    )
