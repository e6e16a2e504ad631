"""Event types, and sources of events in other services, as the use cases see them."""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from tidemill.domain.events.events import Seen
from tidemill.domain.events.source_records import SourceKind, SourceRecord


class EventType(Struct, frozen=True, kw_only=True):
    """One version of an event type."""

    name: str
    version: int
    #: Checks JSON text; returns what a filter may compare: by each name of a field, its values. A value counts as it
    #: was published, and as the model writes it. Raises `InvalidPayloadError` and `EventModelError`.
    read: Callable[[str], Seen]
    #: The JSON schema of the data, and that of what the model writes, for the checks of a synthesis.
    schema: Callable[[], dict[str, Any]]
    written_schema: Callable[[], dict[str, Any]]
    #: By field of the model, all its names: its own and its aliases.
    names: Mapping[str, frozenset[str]]
    #: File and line of the declaration.
    file: str
    line: int


class EventSource(Struct, frozen=True, kw_only=True):
    """How the records of one source become events. Calling it runs the function; tests of it do that."""

    name: str
    kind: SourceKind
    #: The type and the version of its events.
    event: str
    version: int
    function: Callable[[Any], Any]
    #: The data that the function returned, as JSON.
    written: Callable[[Any], Any]
    #: The JSON schema of that data, for the checks of a synthesis; None if the function does not declare a model.
    schema: Callable[[], dict[str, Any]] | None
    #: File and line of the declaration.
    file: str
    line: int

    def __call__(self, record: SourceRecord) -> Any:
        return self.function(record)
