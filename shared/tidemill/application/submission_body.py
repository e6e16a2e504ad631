"""The body of a submission: its checks, and what a repeated submission must have in common with the first."""

import hashlib
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, cast

from tidemill.application.job_types import JobType
from tidemill.application.validation import faults, read_payload, require_short_paths
from tidemill.domain.batches import Opening
from tidemill.domain.errors import InvalidPayloadError, PayloadTooLargeError
from tidemill.domain.events import Publication, identity
from tidemill.domain.flows import FlowStart
from tidemill.domain.submission import Submission
from tidemill.names import LARGEST_BATCH_BODY_BYTES, LARGEST_BODY_BYTES


def checked(submission: Submission, job_type: JobType, *, now: datetime) -> tuple[str, dict[str, Any]]:
    """The payload as JSON text, and decoded from it. Raises `InvalidPayloadError` and `PayloadTooLargeError`."""
    found = faults(submission, job_type, now=now)
    payload, value = "", dict[str, Any]()
    try:
        payload, value = read_payload(submission.payload)
        if not isinstance(submission, Opening | FlowStart):
            require_short_paths(payload, value)
        if job_type.reads_payload:
            job_type.parse(payload)
    except InvalidPayloadError as error:
        found += error.faults
    if found:
        raise InvalidPayloadError(found)
    # Without the facts of job types, which a deployment may change before the event is published again.
    sent = len(payload)
    if isinstance(submission, Publication | Opening | FlowStart):
        sent = len(json.dumps(_identity(submission, value), separators=(",", ":")))
    largest = LARGEST_BATCH_BODY_BYTES if isinstance(submission, FlowStart) else LARGEST_BODY_BYTES
    if sent > largest:
        raise PayloadTooLargeError(sent, largest)
    return payload, value


def body_of(submission: Submission, payload: Any) -> dict[str, Any]:
    """The part of a submission that a replay must repeat. It holds the delay as given, not the resulting time."""
    delay, run_at, deadline = submission.delay, submission.run_at, submission.deadline
    body = {
        "type": submission.type,
        "payload": _identity(submission, payload),
        "lane": submission.lane,
        # A delay of zero is the same as none.
        "delay": delay.total_seconds() if delay else None,
        "run_at": run_at.astimezone(UTC).isoformat() if run_at else None,
        "group": submission.group,
        "deadline": deadline.astimezone(UTC).isoformat() if deadline else None,
        "max_age": submission.max_age.total_seconds() if submission.max_age else None,
        # Their order means nothing.
        "tags": sorted(submission.tags) or None,
        "supersedes": submission.supersedes,
        "batch": submission.batch,
    }
    return {name: value for name, value in body.items() if value is not None}


def body_hash_of(submission: Submission) -> str:
    """Raises `InvalidPayloadError` and `OverflowError`."""
    return hash_of(body_of(submission, read_payload(submission.payload)[1]))


def _identity(submission: Submission, payload: Mapping[str, Any]) -> Mapping[str, Any]:
    """As decoded JSON: a handler may give names of members that are not text."""
    if isinstance(submission, FlowStart):
        # Without the facts of types, and in any order. From the payload: to read a megabyte twice takes a second.
        return {"nodes": sorted(payload["nodes"], key=lambda node: node.get("name", ""))}
    if isinstance(submission, Opening):
        return cast("Mapping[str, Any]", read_payload(submission.asked)[1])
    return identity(submission, payload)


def hash_of(value: Any) -> str:
    """Equal for equal JSON, in any order of members.

    1 and 1.0 differ, as they do for a handler. The numbers of RFC 8785 would make one of 2**53 and 2**53 + 1, and a
    hash unlike that of a live job would refuse its repeat.
    """
    canonical = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()
