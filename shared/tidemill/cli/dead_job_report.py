"""A dead job as operators see it: the full document as JSON, and the fields that tables show."""

import json
from datetime import datetime
from typing import Any

from tidemill.cli.formatting import DASH, timestamp
from tidemill.domain.job import Job


def reason(job: Job) -> str:
    return job.death or DASH


def error_class(job: Job) -> str:
    return job.errors[-1].error_class if job.errors else DASH


def ended_at(job: Job) -> datetime:
    return job.finished_at or job.created_at


def report(job: Job) -> dict[str, Any]:
    """The job document. Times are RFC 3339 in UTC; absent fields are null; `payload`, `result`, `checkpoint` are JSON.

    It has more fields than the HTTP API shows to the owner of the job.
    """
    return {
        "tenant": job.tenant,
        "id": job.id,
        "type": job.type,
        "lane": job.lane,
        "state": job.state,
        "generation": job.generation,
        "attempt": job.attempt,
        "death": job.death,
        "progress": {"done": job.progress_done, "total": job.progress_total, "at": _time(job.checkpoint_at)},
        "cancel_requested_at": _time(job.cancel_requested_at),
        "group": job.group,
        "sequence": job.sequence,
        "run_at": _time(job.run_at),
        "deadline": _time(job.deadline),
        "created_at": _time(job.created_at),
        "due": _time(job.due),
        "claimed_at": _time(job.claimed_at),
        "finished_at": _time(job.finished_at),
        "expires_at": _time(job.expires_at),
        "payload": _value(job.payload),
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
            for error in job.errors
        ],
        "redrives": [{"at": _time(redrive.at), "by": redrive.by, "death": redrive.death} for redrive in job.redrives],
        "checkpoint": _value(job.checkpoint),
        "hops": job.hops,
        "parent": job.parent,
        "payload_at": job.payload_at,
        "trace": job.trace,
    }


def _value(text: str | None) -> Any:
    return None if text is None else json.loads(text)


def _time(value: datetime | None) -> str | None:
    return None if value is None else timestamp(value)
