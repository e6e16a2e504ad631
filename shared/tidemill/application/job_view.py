"""A job as its owner and operators read it: JSON, with times in RFC 3339 and null for absent values."""

import json
from typing import Any, Final

from tidemill.application.ports import Payloads
from tidemill.application.time_text import time_text
from tidemill.domain.batches.batches import CLOSED, Look
from tidemill.domain.batches.composite_cancels import CANCELLED
from tidemill.domain.corrections.undo import Undo
from tidemill.domain.debounce.debounce_record import DebounceWindow
from tidemill.domain.errors import MalformedDocumentError
from tidemill.domain.job import OPERATOR, OWNER, Job

#: What callers and handlers wrote themselves, and which may hold personal data.
CONTENTS: Final = ("payload", "result", "checkpoint", "signals")


def payload_of(job: Job, payloads: Payloads) -> str | None:
    """None if the payload was deleted before its job. A payload itself is never null."""
    try:
        return payloads.load(job)
    except MalformedDocumentError:
        return None


def view(job: Job, *, payload: str | None) -> dict[str, Any]:
    """For the owner, who sees no operator's name or words. `payload`, `result` and `checkpoint` are JSON values."""
    return summary(job) | {
        "payload": _value(payload),
        "result": _value(job.result),
        "errors": [
            {
                "attempt": error.attempt,
                "at": time_text(error.at),
                "class": error.error_class,
                "message": error.message,
                "retryable": error.retryable,
                "next_due": time_text(error.next_due),
            }
            for error in job.known_errors
        ],
        "redrives": [
            {"at": time_text(redrive.at), "by": _shown(redrive.by), "death": redrive.death} for redrive in job.redrives
        ],
        "cancelled_by": _shown(job.cancel.request.by) if job.cancel.request else None,
        "history": [
            {"at": time_text(entry.at), "what": entry.state, "cause": entry.cause, "attempt": entry.attempt}
            for entry in job.known_history
        ],
        "checkpoint": _value(job.progress.checkpoint),
        "steps": [
            {"name": each.name, "at": time_text(each.at), "attempt": each.attempt} for each in job.steps.recorded
        ],
        "signals": [
            {"name": each.name, "at": time_text(each.at), "data": _value(each.data)} for each in job.signals.received
        ],
        "hops": job.hops,
        "parent": job.parent,
        "undo": _undo(job.correction.undo) if job.correction.undo else None,
        "undone_at": time_text(job.correction.undone.at) if job.correction.undone else None,
        "undoes": job.correction.undoes,
        "supersedes": job.correction.supersedes,
        "superseded_by": job.correction.superseded_by,
    }


def operator_view(job: Job, *, payload: str | None) -> dict[str, Any]:
    """Return the JSON of `view`, with everything else that the document keeps for operators."""
    shown = view(job, payload=payload)
    for error, kept in zip(shown["errors"], job.known_errors, strict=True):
        error["traceback"] = kept.traceback or None
    for redrive, entry in zip(shown["redrives"], job.redrives, strict=True):
        redrive |= {"by": entry.by, "reason": entry.reason or None}
    for transition, made in zip(shown["history"], job.known_history, strict=True):
        transition["worker"] = made.worker or None
    return shown | {
        "cancelled_by": job.cancel.request.by if job.cancel.request else None,
        "cancel_reason": (job.cancel.request.reason or None) if job.cancel.request else None,
        "undo_requested_by": job.correction.undone.by if job.correction.undone else None,
        "undo_reason": (job.correction.undone.reason or None) if job.correction.undone else None,
        "tenant": job.tenant,
        "generation": job.generation,
        "payload_at": job.payload.location,
        "trace": job.trace,
    }


def record(job: Job) -> dict[str, Any]:
    """Return the JSON of `operator_view` without the `CONTENTS` and the payload of the undo."""
    shown = operator_view(job, payload=None)
    if shown["undo"]:
        del shown["undo"]["payload"]
    return {name: value for name, value in shown.items() if name not in CONTENTS}


def summary(job: Job) -> dict[str, Any]:
    """A job in a listing: everything except the fields that may be large."""
    return {
        "id": job.id,
        "type": job.type,
        "lane": job.lane,
        "state": job.state,
        "attempt": job.attempt,
        "death": job.death,
        "progress": {
            "done": job.progress.done,
            "total": job.progress.total,
            "at": time_text(job.progress.checkpoint_at),
        },
        "cancel_requested_at": time_text(job.cancel.requested_at),
        "group": job.group.key,
        "tags": list(job.tags),
        "batch": job.batch,
        "debounce": _debounce(job.burst) if job.burst else None,
        "flow": job.flow.id if job.flow else None,
        "node": job.flow.node if job.flow else None,
        "sequence": job.group.sequence,
        "run_at": time_text(job.run_at),
        "deadline": time_text(job.lifetime.deadline),
        "useful_until": time_text(job.lifetime.useful_until),
        "created_at": time_text(job.created_at),
        "due": time_text(job.due),
        "wait": {"cause": job.wait.cause, "key": job.wait.key, "since": time_text(job.wait.since)}
        if job.wait
        else None,
        "claimed_at": time_text(job.lease.claimed_at),
        "finished_at": time_text(job.finished_at),
        "expires_at": time_text(job.lifetime.expires_at),
        "undone_by": job.correction.undone.job_id if job.correction.undone else None,
    }


def batch_view(job: Job, look: Look | None = None) -> dict[str, Any]:
    """The job of a batch. The counts are those of the look, or else those of the last run, at `counted_at`."""
    waited = _value(job.progress.checkpoint) or {}
    counts: dict[str, int] = look.counts if look else waited.get("counts", {})
    counted_at = time_text(look.at) if look else waited.get("counted_at")
    at = {signal.name: time_text(signal.at) for signal in job.signals.received}
    return {
        "id": job.id,
        "state": job.state,
        "jobs": sum(counts.values()),
        "counts": counts,
        "counted_at": counted_at,
        "created_at": time_text(job.created_at),
        "closed_at": at.get(CLOSED) or waited.get("sealed_at"),
        "cancel_requested_at": at.get(CANCELLED),
        "finished_at": time_text(job.finished_at),
        "expires_at": time_text(job.lifetime.expires_at),
        "batch": job.batch,
        "tags": list(job.tags),
    }


def _debounce(burst: DebounceWindow) -> dict[str, Any]:
    return {
        "key": burst.key,
        "until": time_text(burst.until),
        "moves": burst.moves,
        "first_moved_at": time_text(burst.first_moved_at),
        "replacements": burst.replacements,
        "first_replaced_at": time_text(burst.first_replaced_at),
    }


def _undo(undo: Undo) -> dict[str, Any]:
    return {"type": undo.type, "lane": undo.lane, "payload": _value(undo.payload), "tags": list(undo.tags)}


def _shown(by: str) -> str:
    """Who an operator is, callers do not see."""
    return OWNER if by == OWNER else OPERATOR


def _value(text: str | None) -> Any:
    return None if text is None else json.loads(text)
