"""A job as its owner sees it over HTTP: JSON, times in RFC 3339."""

import json
from datetime import datetime
from typing import Any

from shared.domain.job import Job


def view(job: Job, *, payload: str) -> dict[str, Any]:
    """Absent fields are null; `payload`, `result` and `checkpoint` are JSON values."""
    return {
        "id": job.id,
        "type": job.type,
        "lane": job.lane,
        "state": job.state,
        "generation": job.generation,
        "attempt": job.attempt,
        "payload": json.loads(payload),
        "result": None if job.result is None else json.loads(job.result),
        "death": job.death,
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
        "checkpoint": None if job.checkpoint is None else json.loads(job.checkpoint),
        "progress": {"done": job.progress_done, "total": job.progress_total, "at": _time(job.checkpoint_at)},
        "cancel_requested_at": _time(job.cancel_requested_at),
        "group": job.group,
        "sequence": job.sequence,
        "hops": job.hops,
        "parent": job.parent,
        "run_at": _time(job.run_at),
        "deadline": _time(job.deadline),
        "created_at": _time(job.created_at),
        "due": _time(job.due),
        "claimed_at": _time(job.claimed_at),
        "finished_at": _time(job.finished_at),
        "expires_at": _time(job.expires_at),
    }


def _time(value: datetime | None) -> str | None:
    return None if value is None else value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
