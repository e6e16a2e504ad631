"""A job as its owner and operators read it: JSON, with times in RFC 3339 and null for absent values."""

import json
from datetime import datetime
from typing import Any

from tidemill.application.ports import Payloads
from tidemill.domain.errors import MalformedDocumentError
from tidemill.domain.job import Job


def payload_of(job: Job, payloads: Payloads) -> str | None:
    """None if the payload was deleted before its job. A payload itself is never null."""
    try:
        return payloads.load(job)
    except MalformedDocumentError:
        return None


def view(job: Job, *, payload: str | None) -> dict[str, Any]:
    """`payload`, `result` and `checkpoint` are JSON values."""
    return summary(job) | {
        "payload": _value(payload),
        "result": _value(job.result),
        "errors": [
            {
                "attempt": error.attempt,
                "at": _time(error.at),
                "class": error.error_class,
                "message": error.message,
                "retryable": error.retryable,
                "next_due": _time(error.next_due),
            }
            for error in job.known_errors
        ],
        "redrives": [{"at": _time(redrive.at), "by": redrive.by, "death": redrive.death} for redrive in job.redrives],
        "checkpoint": _value(job.checkpoint),
        "hops": job.hops,
        "parent": job.parent,
    }


def summary(job: Job) -> dict[str, Any]:
    """A job in a listing: everything except the fields that may be large."""
    return {
        "id": job.id,
        "type": job.type,
        "lane": job.lane,
        "state": job.state,
        "attempt": job.attempt,
        "death": job.death,
        "progress": {"done": job.progress_done, "total": job.progress_total, "at": _time(job.checkpoint_at)},
        "cancel_requested_at": _time(job.cancel_requested_at),
        "group": job.group,
        "tags": list(job.tags),
        "sequence": job.sequence,
        "run_at": _time(job.run_at),
        "deadline": _time(job.deadline),
        "created_at": _time(job.created_at),
        "due": _time(job.due),
        "wait": {"cause": job.wait.cause, "key": job.wait.key, "since": _time(job.wait.since)} if job.wait else None,
        "claimed_at": _time(job.claimed_at),
        "finished_at": _time(job.finished_at),
        "expires_at": _time(job.expires_at),
    }


def _value(text: str | None) -> Any:
    return None if text is None else json.loads(text)


def _time(value: datetime | None) -> str | None:
    return None if value is None else value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
