"""An event type as the use cases see it: name, version, and the function that checks its data."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tidemill.domain.events import Seen


@dataclass(frozen=True, slots=True, kw_only=True)
class EventType:
    """One version of an event type."""

    name: str
    version: int
    #: Checks decoded JSON; returns what a filter may compare: by each name of a field, its values. A value counts as it
    #: was published, and as the model writes it. Raises `InvalidPayloadError`.
    read: Callable[[Any], Seen]
    #: The JSON schema of the data, and that of what the model writes, for the checks of a synthesis.
    schema: Callable[[], dict[str, Any]]
    written_schema: Callable[[], dict[str, Any]]
    #: By field of the model, all its names: its own and its aliases.
    names: Mapping[str, frozenset[str]]
    #: File and line of the declaration.
    file: str
    line: int
