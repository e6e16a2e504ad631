"""Open a batch, close it, and cancel it. The job type in `tidemill.batch` waits for its members."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from tidemill.application.control import Control
from tidemill.application.job_types import JobType
from tidemill.application.new_jobs import Accepted
from tidemill.application.submit import Submit
from tidemill.application.validation import require_key_type, require_types
from tidemill.domain.batches import CLOSED, Batch, Opening, closed_at, is_batch
from tidemill.domain.errors import (
    Fault,
    InvalidPayloadError,
    PayloadTooLargeError,
    UnknownJobTypeError,
    UnloadedJobTypeError,
)
from tidemill.domain.job import Job
from tidemill.domain.submission import Submission
from tidemill.domain.time_constants import SECOND
from tidemill.domain.whole_cancels import CANCELLED
from tidemill.names import BATCH_TYPE

#: What a callback and a node of a flow may not have: each is submitted once, when others have ended.
NOT_OF_LATER_JOBS: Final = {
    "key": "idempotency_key",
    "unique": "unique",
    "delay": "delay_seconds",
    "run_at": "run_at",
    "deadline": "deadline",
    "supersedes": "supersedes",
    "batch": "batch",
    "debounce": "debounce_seconds",
}
#: Why neither may be of a type with `unique_seconds`: of two of them with one payload, both would run.
NO_UNIQUE_TYPE: Final = (
    "jobs of this type are unique by payload, but each of these runs; use a type without unique_seconds"
)


def open_batch(batch: Batch, submit: Submit, *, tenant: str, trace: str) -> Accepted:
    """Write the job of the batch; `replayed` if an earlier opening with the key did.

    Raises `InvalidPayloadError` with the path of each fault, and what `Submit` raises.
    """
    require_key_type(batch.key)
    for name, callback in batch.callbacks.items():
        require_types(callback, under=f"/{name}")
    asked = {name: _asked(callback) for name, callback in batch.callbacks.items()}
    opening = Opening(
        type=BATCH_TYPE,
        payload=asked,
        asked=asked,
        # Batches and jobs may have equal keys.
        key=None if batch.key is None else f"batch/{batch.key}",
        tags=batch.tags,
        batch=batch.batch,
    )
    try:
        _require_sound(batch, submit)
    except (InvalidPayloadError, UnloadedJobTypeError) as refused:
        return submit.earlier(opening, tenant=tenant, refused=refused)
    facts = {
        name: asked[name] | _facts(callback, submit.job_types.get(callback.type))
        for name, callback in batch.callbacks.items()
    }
    return submit(replace(opening, payload=facts), tenant=tenant, trace=trace)


def close_batch(control: Control, tenant: str, batch_id: str, *, now: datetime) -> Job | None:
    """Let no more jobs join, and return the batch; None if the tenant has no such batch.

    Its job closes the pages, so a job that was about to join may still do so. A batch whose workers crashed too often
    may be dead before its close, and keeps the close for its redrive. May be repeated: a closed batch stays as it is.

    Raises `SignalRefusedError` if its job was cancelled while it was open.
    """
    batch = control.find(tenant, batch_id)
    if batch is None or not is_batch(batch):
        return None
    if closed_at(batch, now=now) is not None:
        return batch
    return control.signal_whole(tenant, batch_id, CLOSED, kept_dead=True)


def cancel_batch(control: Control, tenant: str, batch_id: str, *, kept_dead: bool = False) -> Job | None:
    """Let no more jobs join, cancel those that have not ended, and return the batch; None without such a batch.

    Its job cancels them. May be repeated. Raises `SignalRefusedError` if the batch has ended. `kept_dead`: a dead one
    keeps the cancel for its run after a redrive.
    """
    batch = control.find(tenant, batch_id)
    if batch is None or not is_batch(batch):
        return None
    control.signal_whole(tenant, batch_id, CANCELLED, kept_dead=kept_dead)
    # The one that an open batch waits for.
    return control.signal_whole(tenant, batch_id, CLOSED, kept_dead=kept_dead)


def _asked(callback: Submission) -> dict[str, Any]:
    """Without what has its default."""
    asked = {
        "type": callback.type,
        "payload": callback.payload,
        "lane": callback.lane,
        "group": callback.group,
        "tags": sorted(callback.tags),
        "max_age_seconds": callback.max_age / SECOND if callback.max_age else None,
    }
    return {name: value for name, value in asked.items() if value}


def _facts(callback: Submission, job_type: JobType) -> dict[str, Any]:
    """Return the facts that `tidemill.batch.job.CallbackFacts` reads, without those that have their default."""
    max_age = callback.max_age or job_type.max_age
    facts = {
        "lane": callback.lane or job_type.lane,
        "blocks": job_type.blocks or None,
        "max_age_seconds": max_age / SECOND if max_age else None,
        "retention_seconds": job_type.retention / SECOND if job_type.retention else None,
    }
    return {name: value for name, value in facts.items() if value is not None}


def type_facts(submissions: Iterable[Submission], submit: Submit) -> dict[str, Any]:
    """The facts of the types of these submissions, by type, as a flow keeps them."""
    names = dict.fromkeys(submission.type for submission in submissions)
    return {name: _facts(Submission(type=name), submit.job_types.get(name)) for name in sorted(names)}


def _require_sound(batch: Batch, submit: Submit) -> None:
    """Raises `InvalidPayloadError`, and `UnloadedJobTypeError` while a job file is broken that may declare a type."""
    if found := [fault for name, callback in batch.callbacks.items() for fault in _faults(name, callback, submit)]:
        raise InvalidPayloadError(found)


def _faults(name: str, callback: Submission, submit: Submit) -> Iterator[Fault]:
    if extra := [path for field, path in NOT_OF_LATER_JOBS.items() if getattr(callback, field) is not None]:
        yield from (Fault(f"/{name}/{path}", "a callback has none") for path in extra)
        return
    try:
        if submit.check(callback).unique is not None:
            yield Fault(f"/{name}/type", NO_UNIQUE_TYPE)
    except InvalidPayloadError as refused:
        yield from (Fault(f"/{name}{fault.path}", fault.message) for fault in refused.faults)
    except UnloadedJobTypeError:
        raise
    except UnknownJobTypeError as refused:
        yield Fault(f"/{name}/type", str(refused))
    except PayloadTooLargeError as refused:
        yield Fault(f"/{name}/payload", str(refused))
