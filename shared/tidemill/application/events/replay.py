"""Replay: gives the stored events of a type to one consumer again. A run goes on where the last ended.

The id of each job is made of the event, the consumer and the name of the replay. So a run that was killed, a repeated
command and an overlapping replay of the same name make no second job, for as long as the first is kept.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final, Protocol
from uuid import NAMESPACE_OID, uuid5

from msgspec import Struct, field
from msgspec.structs import asdict

from tidemill.application.job_types import JobType, JobTypes
from tidemill.application.passes.job_search import FoundPage
from tidemill.application.passes.job_walk import JobWalk, WalkProgress
from tidemill.application.passes.pace import Pace
from tidemill.application.ports import Clock, NewToken, Payloads, SubmitStore, UnreadableItem
from tidemill.application.submission.submit import Submit
from tidemill.domain.error_text import error_text
from tidemill.domain.errors import (
    InvalidPayloadError,
    KeyReusedError,
    PermanentJobError,
    StoreUnavailableError,
    TransactionConflictError,
)
from tidemill.domain.events.events import Delivery, Seen
from tidemill.domain.job import Job
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.submission.trace_context import trace_of, traceparent_of
from tidemill.names import EVENT_TYPE, Lane

_REPLAY_IDS: Final = uuid5(NAMESPACE_OID, "tidemill.replay")
#: The tag of the jobs of a replay; a replay with a name adds a colon and the name.
REPLAY_TAG: Final = "replay"
_FAILURES: Final = 5
_LONGEST_TEXT: Final = 200
#: The progress is a checkpoint of at most 8 KiB, as JSON, in which a character takes up to twelve bytes.
_LARGEST_BYTES: Final = 7 * 1024


class ReplayVerdict(StrEnum):
    """What became of one event."""

    #: It has made a job, or would have in a dry run.
    REPLAYED = "replayed"
    #: A replay of the same name made its job.
    EARLIER = "earlier"
    #: The filter or the version of the consumer holds it back.
    FILTERED = "filtered"
    #: Only those that did not reach the consumer are wanted, and its publication did.
    REACHED = "reached"
    #: The model of the consumer refuses its data.
    REFUSED = "refused"
    #: Its job has not succeeded, so it has not reached its consumers.
    UNFINISHED = "unfinished"
    #: It has a group, and the events are not read in their order.
    UNORDERED = "unordered"
    UNREADABLE = "unreadable"


#: The verdicts whose first events are listed.
_FAULTS: Final = (ReplayVerdict.REFUSED, ReplayVerdict.UNREADABLE)


class Replay(Struct, frozen=True, kw_only=True):
    """Which events to give to which consumer. A replay with another name gives it the same events again."""

    consumer: str
    event: str
    version: int | None
    tenant: str | None
    #: Bounds of the time of the publication. `until` is not included.
    since: datetime
    until: datetime
    #: Only events whose publication did not reach the consumer.
    missed: bool = False
    name: str = ""
    dry_run: bool = False


class StoredEvents(Protocol):
    """The jobs of events that were published within the times of a replay."""

    #: Whether they come in the order of their times.
    ordered: bool

    def pages(
        self, wanted: Replay, *, after: str | None, now: datetime, time_left: Callable[[], timedelta]
    ) -> Iterator[FoundPage]:
        """Ends with the events, or once no time is left for a further page."""

    def cursor_after(self, event: Job) -> str:
        """A cursor that goes on after this event."""


class Progress(WalkProgress, frozen=True, kw_only=True):
    #: By `ReplayVerdict`.
    counts: Mapping[str, int] = field(default_factory=dict)
    #: The first faults, shortened.
    failures: tuple[Mapping[str, str], ...] = ()

    def as_json(self) -> dict[str, Any]:
        value = asdict(self) | {"failures": list(self.failures)}
        while value["failures"] and len(json.dumps(value)) > _LARGEST_BYTES:
            value["failures"].pop()
        return value

    @classmethod
    def of_json(cls, value: Mapping[str, Any]) -> "Progress":
        return cls(**{**value, "failures": tuple(value["failures"])}) if value else cls()

    @property
    def seen(self) -> int:
        return sum(self.counts.values())

    def after(self, verdict: ReplayVerdict, *, tenant: str = "", event: str = "", error: str = "") -> "Progress":
        counts = {**self.counts, verdict: self.counts.get(verdict, 0) + 1}
        if verdict not in _FAULTS or len(self.failures) == _FAILURES:
            return replace(self, counts=counts)
        failure = {"tenant": tenant, "id": event, "error": error}
        shown = {name: text[:_LONGEST_TEXT] for name, text in failure.items()}
        return replace(self, counts=counts, failures=(*self.failures, shown))


def delivery_id(event: Job, consumer: str, name: str) -> str:
    """One for each event, consumer and name; another for a later event of its key."""
    parts = [event.tenant, event.id, event.created_at.isoformat(), consumer, name]
    return str(uuid5(_REPLAY_IDS, json.dumps(parts)))


class Replayer:
    """Each run may be repeated, and two may work at once. `jobs` bounds the events per second."""

    def __init__(
        self,
        *,
        events: StoredEvents,
        store: SubmitStore,
        payloads: Payloads,
        submit: Submit,
        jobs: Pace,
        clock: Clock,
        new_token: NewToken,
    ) -> None:
        self._events = events
        self._store = store
        self._payloads = payloads
        self._submit = submit
        self._walk = JobWalk(jobs=jobs, clock=clock)
        self._clock = clock
        self._new_token = new_token

    def run(
        self,
        wanted: Replay,
        progress: Progress,
        *,
        time_left: Callable[[], timedelta],
        save: Callable[[Progress], None],
    ) -> Progress:
        """Go on until it is complete, or no time is left.

        Raises `PermanentJobError` if this code has no such consumer, and what the store raises.
        """
        consumer = _consumer(wanted, self._submit.job_types)
        return self._walk.run(
            self._events.pages(wanted, after=progress.cursor, now=self._clock(), time_left=time_left),
            progress,
            see=lambda seen, found: self._given(wanted, consumer, found, seen),
            cursor_after=self._events.cursor_after,
            time_left=time_left,
            save=save,
        )

    def _given(self, wanted: Replay, consumer: JobType, event: Job | UnreadableItem, progress: Progress) -> Progress:
        """The progress after this event."""
        if isinstance(event, UnreadableItem):
            return progress.after(ReplayVerdict.UNREADABLE, event=event.key, error=str(event.error))
        try:
            published = json.loads(self._payloads.load(event))
            if published["type"] != wanted.event or wanted.version not in {None, published["version"]}:
                return progress
            verdict, error = self._verdict(wanted, consumer, event, published)
        except (StoreUnavailableError, TransactionConflictError):
            raise  # the next run begins with this event
        except Exception as failed:  # noqa: BLE001 - one event, or a model of the app, must not stop the others
            verdict, error = ReplayVerdict.UNREADABLE, error_text(failed)
        return progress.after(verdict, tenant=event.tenant, event=event.id, error=error)

    def _verdict(
        self, wanted: Replay, consumer: JobType, event: Job, published: Mapping[str, Any]
    ) -> tuple[ReplayVerdict, str]:
        version, data = published["version"], published["data"]
        if event.state is not State.SUCCEEDED:
            return ReplayVerdict.UNFINISHED, ""
        seen = _seen(self._submit.job_types, wanted.event, version, data)
        if not any(one.takes(wanted.event, version) and one.passes(seen) for one in consumer.consumes):
            return ReplayVerdict.FILTERED, ""
        if wanted.missed and any(one["type"] == consumer.name for one in published["consumers"]):
            return ReplayVerdict.REACHED, ""
        if event.group.key is not None and not self._events.ordered:
            return ReplayVerdict.UNORDERED, ""
        try:
            consumer.parse(json.dumps(data))
        except InvalidPayloadError as refused:
            return ReplayVerdict.REFUSED, str(refused)
        return self._delivered(wanted, consumer, event, data), ""

    def _delivered(self, wanted: Replay, consumer: JobType, event: Job, data: Mapping[str, Any]) -> ReplayVerdict:
        group = event.group.key.removeprefix(f"{EVENT_TYPE}/") if event.group.key else None
        delivery = Delivery(
            type=consumer.name,
            payload=data,
            # Nothing waits for it, so it yields to all other work. It is old by intent, so it does not expire.
            lane=Lane.BULK,
            group=None if group is None else f"{consumer.name}/{group}",
            blocks=consumer.blocks,
            retention=consumer.retention,
            tags=(f"{REPLAY_TAG}:{wanted.name}" if wanted.name else REPLAY_TAG,),
        )
        job_id = delivery_id(event, consumer.name, wanted.name)
        if wanted.dry_run:
            found = self._store.get(event.tenant, job_id)
            made = found is not None and not found.lifetime.over(self._clock())
            return ReplayVerdict.EARLIER if made else ReplayVerdict.REPLAYED
        # Unique to this write, so that an earlier one of the same job does not pass for it.
        trace = trace_of(self._new_token(), traceparent_of(event.trace))
        job = self._submit.prepare(delivery, tenant=event.tenant, trace=trace, job_id=job_id)
        job = replace(job, parent=event.id, hops=event.hops + 1)
        try:
            return ReplayVerdict.EARLIER if self._submit.insert(job).replayed else ReplayVerdict.REPLAYED
        except KeyReusedError:
            # Its payload was migrated, or its type belonged to other tags: it is the same event all the same.
            return ReplayVerdict.EARLIER


def _consumer(wanted: Replay, job_types: JobTypes) -> JobType:
    if job_types.faults:
        raise PermanentJobError(f"a job file is broken, and may declare the consumer: {job_types.faults[0]}")
    declared = wanted.consumer in job_types.names() and job_types.get(wanted.consumer)
    if not declared or not any(one.type == wanted.event for one in declared.consumes):
        raise PermanentJobError(
            f"this version of the code has no job type {wanted.consumer!r} that consumes {wanted.event!r}: correct the "
            "name, or repeat the command after the deployment"
        )
    return declared


def _seen(job_types: JobTypes, event: str, version: int, data: Mapping[str, Any]) -> Seen:
    """For filters. The data alone if the present model of the event refuses it, or if no model is left."""
    declared = job_types.events.get((event, version))
    try:
        if declared:
            return declared.read(json.dumps(data))
    except InvalidPayloadError:
        pass
    return {name: (value,) for name, value in data.items()}
