"""From an event to the submission of its job. The consumers are fixed here: those that the publisher's code knows."""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from tidemill.application.event_types import EventType
from tidemill.application.job_types import JobType, JobTypes
from tidemill.application.submission.job_ids import follow_up_id
from tidemill.application.submission.later_jobs import facts_of
from tidemill.application.submission.new_jobs import Accepted
from tidemill.application.submission.submit import Submit
from tidemill.application.submission.validation import read_payload, require_short_paths
from tidemill.domain.errors import Fault, InvalidPayloadError, TidemillError, UnloadedJobTypeError
from tidemill.domain.events.events import LONGEST_EVENT_GROUP, LONGEST_EVENT_KEY, Event, Publication, RecordEvent, Seen
from tidemill.domain.job import Job
from tidemill.names import EVENT_TYPE

#: `published_records.event_key` makes keys of this form: the name of a source, and a JSON list or a SHA-256.
_LIKE_THAT_OF_A_RECORD: Final = re.compile(r"[^/]+/(\[|[0-9a-f]{64}$)")


def publish(event: Event, submit: Submit, *, tenant: str, trace: str) -> Accepted:
    """Write the job of the event; `replayed` if an earlier publication with the key did.

    Raises what `publication` and `Submit` raise.
    """
    try:
        submission = publication(event, submit.job_types)
    except (InvalidPayloadError, UnloadedJobTypeError) as refused:
        return _earlier(event, submit, tenant=tenant, refused=refused)
    return submit(submission, tenant=tenant, trace=trace)


def publication(event: Event, job_types: JobTypes) -> Publication:
    """Check the event, and list its consumers.

    Raises `InvalidPayloadError` with the path of each fault, `EventModelError`, and `UnloadedJobTypeError` while a job
    file is broken, which may declare a consumer.
    """
    faults = list(_faults(event))
    given: tuple[Any, Any] = (event.type, event.version)
    if not isinstance(given[0], str) or not isinstance(given[1], int):
        raise InvalidPayloadError([*faults, Fault("/type", "must be text, and its version a whole number")])
    declared = job_types.events.get((event.type, event.version))
    if fault := next(iter(job_types.faults), None):
        # A job that publishes waits in the line of this name, which stands until the file is fixed: no job type has it.
        name = fault.names[0] if fault.names else f"event {event.type}"
        raise UnloadedJobTypeError(name, job_types.names(), str(fault))
    if declared is None:
        faults.append(_unknown(event, job_types))
    data: Any = {}
    seen: Seen = {}
    try:
        text, data = read_payload(event.data, under="/data")
        require_short_paths(text, data, under="/data")
        seen = declared.read(text) if declared else {}
    except InvalidPayloadError as error:
        faults += error.faults
    if faults or declared is None:
        raise InvalidPayloadError(faults)
    return _publication(
        event, data, consumers=[{"type": one.name} | facts_of(one) for one in _consumers(job_types, declared, seen)]
    )


def consumer_jobs(event: Job) -> dict[str, str]:
    """The ids of the jobs that the job of an event has created, with the type of each. Empty before its success."""
    consumers = json.loads(event.result)["consumers"] if event.result else []
    return {follow_up_id(event, index): consumer for index, consumer in enumerate(consumers)}


def _publication(event: Event, data: Any, *, consumers: list[dict[str, Any]]) -> Publication:
    return Publication(
        event=event,
        type=EVENT_TYPE,
        payload={"type": event.type, "version": event.version, "data": data, "consumers": consumers},
        key=None if event.key is None else _job_key(event, event.key),
        group=None if event.group is None else f"{EVENT_TYPE}/{event.group}",
    )


def _job_key(event: Event, key: str) -> str:
    """Two types may name their events alike, such as by the id of an order.

    No key of a caller leads to the event of a record: the source would take it for published, and drop the record.
    """
    apart = "/" if _LIKE_THAT_OF_A_RECORD.match(str(key)) and not isinstance(event, RecordEvent) else ""
    # No event type is empty.
    return f"event/{apart}{event.type}/{key}"


def _earlier(event: Event, submit: Submit, *, tenant: str, refused: TidemillError) -> Accepted:
    """The job of an earlier publication, which was accepted before the event type changed. Raises `refused`."""
    try:
        data = read_payload(event.data, under="/data")[1]
    except InvalidPayloadError:
        raise refused from None
    return submit.earlier(_publication(event, data, consumers=[]), tenant=tenant, refused=refused)


def _faults(event: Event) -> Iterator[Fault]:
    named: dict[str, object] = {"/idempotency_key": event.key, "/group": event.group}
    if wrong := [path for path, value in named.items() if not isinstance(value, str | None)]:
        yield from (Fault(path, "must be text") for path in wrong)
        return
    if event.key is not None and not 0 < len(event.key) <= LONGEST_EVENT_KEY:
        yield Fault("/idempotency_key", f"must be 1 to {LONGEST_EVENT_KEY} characters")
    if event.group is not None and not 0 < len(event.group.encode(errors="replace")) <= LONGEST_EVENT_GROUP:
        yield Fault("/group", f"must be text of 1 to {LONGEST_EVENT_GROUP} bytes in UTF-8")


def _unknown(event: Event, job_types: JobTypes) -> Fault:
    versions = sorted(version for name, version in job_types.events if name == event.type)
    if versions:
        return Fault("/version", f"unknown version of {event.type!r}; known versions: {', '.join(map(str, versions))}")
    known = ", ".join(sorted({name for name, _ in job_types.events})) or "none"
    return Fault("/type", f"unknown event type {event.type!r}; known types: {known}")


def _consumers(job_types: JobTypes, declared: EventType, seen: Seen) -> Iterator[JobType]:
    for job_type in map(job_types.get, job_types.names()):
        if any(one.takes(declared.name, declared.version) and one.passes(seen) for one in job_type.consumes):
            yield job_type
