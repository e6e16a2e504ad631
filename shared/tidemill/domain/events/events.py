"""An event, the consumers that it reaches, and the submissions that carry it. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from msgspec import Struct, field

from tidemill.domain.job import Job
from tidemill.domain.submission.submission import DerivedKey, PinnedSubmission
from tidemill.names import EVENT_TYPE

#: One transaction creates the jobs of all consumers. A job in a group takes up to four of its 100 entries, if it is the
#: first that waits, and the event's own job takes one:
#: https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_TransactWriteItems.html
MOST_CONSUMERS: Final = 24
#: In bytes of UTF-8. The group of a consumer's job is the type, a slash and this, which fits into the name of a group.
LONGEST_EVENT_GROUP: Final = 63
#: In characters. The idempotency key of the event's job has the event type before it.
LONGEST_EVENT_KEY: Final = 256
FIRST_VERSION: Final = 1

#: What a filter may compare a field of the data with.
Scalar = str | int | bool | None
#: By name of a top-level field, the values that it counts as.
Seen = Mapping[str, Sequence[Any]]


class Event(Struct, frozen=True, kw_only=True):
    """Something that happened. Each consumer of its type whose filter matches gets a job with `data` as its payload."""

    type: str
    #: Decoded JSON, as the model of the event type and version accepts it.
    data: Mapping[str, Any] = field(default_factory=dict)
    version: int = FIRST_VERSION
    #: Idempotency key: publications of a tenant with the same type and key make one event.
    key: str | None = None
    #: Each consumer runs the events of a tenant with the same group one at a time, in the order accepted.
    group: str | None = None


class RecordEvent(Event, frozen=True, kw_only=True):
    """The event of a record of a source, whose key the engine derived from the record."""


class Consumption(Struct, frozen=True, kw_only=True):
    """The events that a job type consumes: those of the type, of one version or of any, that pass the filter."""

    type: str
    version: int | None = None
    #: The values that each field of the data may have.
    filter: Mapping[str, tuple[Scalar, ...]] = field(default_factory=dict)

    def takes(self, type_: str, version: int) -> bool:
        return self.type == type_ and self.version in {None, version}

    def passes(self, data: Seen) -> bool:
        return all(
            any(_same(found, value) for found in data.get(name, ()) for value in allowed)
            for name, allowed in self.filter.items()
        )


def _same(found: Any, wanted: Scalar) -> bool:
    """Compare as JSON does: `true` is not 1."""
    return isinstance(found, bool) == isinstance(wanted, bool) and bool(found == wanted)


class Publication(DerivedKey, frozen=True, kw_only=True):
    """The submission of an event's job, which creates the jobs of its consumers."""

    carries: ClassVar[str | None] = EVENT_TYPE
    event: Event

    def identity(self, payload: Mapping[str, Any]) -> Mapping[str, Any]:
        """Leave out the consumers, which may have changed since the first publication."""
        return {name: value for name, value in payload.items() if name != "consumers"}


class Delivery(PinnedSubmission, frozen=True, kw_only=True):
    """The submission of the job of one consumer, with the facts of its type at the publication.

    A refusal would stop the other consumers, too.
    """


def is_event(job: Job) -> bool:
    return job.type == EVENT_TYPE
