"""An event type as the use cases see it: name, version, and the function that checks its data."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class EventType:
    """One version of an event type."""

    name: str
    version: int
    #: Checks decoded JSON; returns it with the defaults of the model. Raises `InvalidPayloadError`.
    read: Callable[[Any], dict[str, Any]]
    #: The JSON schema of the data, for the checks of a synthesis.
    schema: Callable[[], dict[str, Any]]
    #: File and line of the declaration.
    file: str
    line: int
