"""What batches, flows, events and undos share: jobs that are asked for now and submitted when others have ended."""

from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any, Final

from tidemill.application.job_types import JobType
from tidemill.application.submission.submit import Submit
from tidemill.domain.errors import (
    Fault,
    InvalidPayloadError,
    PayloadTooLargeError,
    UnknownJobTypeError,
    UnloadedJobTypeError,
)
from tidemill.domain.submission.submission import Submission
from tidemill.domain.time_constants import SECOND
from tidemill.names import Lane

#: The members of a submission that such a job may not have, with their names over HTTP. It is submitted once, and its
#: id and its time follow from the jobs that it waits for.
_NOT_OF_LATER_JOBS: Final = {
    "key": "idempotency_key",
    "unique": "unique",
    "delay": "delay_seconds",
    "run_at": "run_at",
    "deadline": "deadline",
    "supersedes": "supersedes",
    "batch": "batch",
    "debounce": "debounce_seconds",
}
#: Two such jobs with one payload would both run.
_NO_UNIQUE_TYPE: Final = (
    "jobs of this type are unique by payload, but each of these runs; use a type without unique_seconds"
)


def needless(submission: Submission) -> list[str]:
    """Return the names over HTTP of the members that a later job may not have."""
    return [name for member, name in _NOT_OF_LATER_JOBS.items() if getattr(submission, member) is not None]


def faults_of(submission: Submission, submit: Submit, *, path: str, kind: str) -> Iterator[Fault]:
    """Check a callback or a node. `path` is where the request has it, and `kind` names it: "a node".

    Raises `UnloadedJobTypeError` while a job file is broken that may declare its type.
    """
    if names := needless(submission):
        yield from (Fault(f"{path}/{name}", f"{kind} has none") for name in names)
        return
    try:
        if submit.check(submission).unique is not None:
            yield Fault(f"{path}/type", _NO_UNIQUE_TYPE)
    except InvalidPayloadError as refused:
        yield from (Fault(path + fault.path, fault.message) for fault in refused.faults)
    except UnloadedJobTypeError:
        raise
    except UnknownJobTypeError as refused:
        yield Fault(f"{path}/type", str(refused))
    except PayloadTooLargeError as refused:
        yield Fault(f"{path}/payload", str(refused))


def asked(submission: Submission) -> dict[str, Any]:
    """Return the submission as JSON, without what has its default."""
    members = {
        "type": submission.type,
        "payload": submission.payload,
        "lane": submission.lane,
        "group": submission.group,
        "tags": sorted(submission.tags),
        "max_age_seconds": submission.max_age / SECOND if submission.max_age else None,
    }
    return {name: value for name, value in members.items() if value}


def facts_of(job_type: JobType, *, lane: Lane | None = None, max_age: timedelta | None = None) -> dict[str, Any]:
    """Return what a later submission needs to know of its type, without what has its default.

    `lane` and `max_age` are those that the submission asked for. `CallbackFacts` and `Consumer` read the members.
    """
    max_age = max_age or job_type.max_age
    facts = {
        "lane": lane or job_type.lane,
        "blocks": job_type.blocks or None,
        "max_age_seconds": max_age / SECOND if max_age else None,
        "retention_seconds": job_type.retention / SECOND if job_type.retention else None,
    }
    return {name: value for name, value in facts.items() if value is not None}


def type_facts(submissions: Iterable[Submission], submit: Submit) -> dict[str, Any]:
    """Return the facts of the types of these submissions, by type, as a flow keeps them."""
    names = dict.fromkeys(submission.type for submission in submissions)
    return {name: facts_of(submit.job_types.get(name)) for name in sorted(names)}
