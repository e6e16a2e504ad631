"""Submit: one conditional write makes a job, and the document is its idempotency record."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import NAMESPACE_OID, uuid5

from shared.application.job_types import JobTypes
from shared.application.ports import Clock, JobStore, NewToken
from shared.domain.errors import Fault, InvalidPayloadError, KeyReusedError, PayloadTooLargeError, WriteRefusedError
from shared.domain.job import Job
from shared.domain.states import State
from shared.names import LARGEST_BODY_BYTES

#: Whoever reads JSON walks it with a stack of limited depth, so what is accepted stays far from every reader's limit.
DEEPEST_NESTING: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """What a caller asks for."""

    type: str
    #: Decoded JSON.
    payload: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """The job of a submission. `replayed` when it was there already."""

    job: Job
    replayed: bool


#: Derived ids live in a space of their own.
_KEYED_IDS: Final = uuid5(NAMESPACE_OID, "millrace.job")


def keyed_job_id(tenant: str, key: str) -> str:
    """The id of the one job that this tenant's key stands for."""
    return str(uuid5(_KEYED_IDS, json.dumps([tenant, key])))


class Submit:
    """The use case. `new_id` gives ids that sort by time."""

    def __init__(self, *, store: JobStore, job_types: JobTypes, clock: Clock, new_id: NewToken) -> None:
        self._store = store
        self._job_types = job_types
        self._clock = clock
        self._new_id = new_id

    def prepare(self, submission: Submission, *, tenant: str, key: str | None, trace: str) -> Job:
        """Check a submission and make its document, without writing it.

        Raises `UnknownJobTypeError`, `InvalidPayloadError` or `PayloadTooLargeError`.
        """
        job_type = self._job_types.get(submission.type)
        payload = _encoded(submission.payload)
        job_type.parse(submission.payload)
        if len(payload) > LARGEST_BODY_BYTES:
            raise PayloadTooLargeError(len(payload), LARGEST_BODY_BYTES)
        now = self._clock()
        return Job(
            tenant=tenant,
            id=self._new_id() if key is None else keyed_job_id(tenant, key),
            type=job_type.name,
            lane=job_type.lane,
            payload=payload,
            body_hash=_body_hash(submission),
            trace=trace,
            state=State.QUEUED,
            generation=1,
            attempt=0,
            created_at=now,
            due=now,
        )

    def insert(self, job: Job) -> Accepted:
        """Write a prepared job, or find the one that an earlier submission under the same key made.

        Raises `KeyReusedError` when that one has another body.
        """
        try:
            self._store.insert_if_absent(job)
        except WriteRefusedError as refused:
            if refused.current is None:
                raise
            if refused.current.body_hash != job.body_hash:
                raise KeyReusedError("this idempotency key was used before with another body") from None
            return Accepted(job=refused.current, replayed=True)
        return Accepted(job=job, replayed=False)

    def __call__(self, submission: Submission, *, tenant: str, key: str | None, trace: str) -> Accepted:
        return self.insert(self.prepare(submission, tenant=tenant, key=key, trace=trace))


def _encoded(payload: Mapping[str, Any]) -> str:
    if _nesting(payload) > DEEPEST_NESTING:
        raise InvalidPayloadError([Fault("/payload", f"nested deeper than {DEEPEST_NESTING} levels")])
    try:
        return json.dumps(payload, separators=(",", ":"), allow_nan=False)
    except ValueError as error:
        # `1e999` is JSON and reads as infinity, which is none.
        raise InvalidPayloadError([Fault("/payload", f"every number must be finite: {error}")]) from error


def _nesting(value: Any) -> int:
    depth, level = 0, [value]
    while containers := [held for held in level if isinstance(held, Mapping | list)]:
        depth += 1
        level = [held for outer in containers for held in (outer.values() if isinstance(outer, Mapping) else outer)]
    return depth


def _body_hash(submission: Submission) -> str:
    canonical = json.dumps([submission.type, submission.payload], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode("ascii")).hexdigest()
