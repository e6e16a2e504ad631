"""How one kind of resource is compared with the template, and restored."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tidemill.operator.drift.expected_resource import Expected, Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A resource as it is now."""

    #: By the names in `Expected.settings`. A setting that is not set may be absent.
    settings: Mapping[str, Any]
    #: The name of the state in its AWS API.
    state: str = "present"
    #: Whether a mapping or schedule calls its function.
    enabled: bool = True
    #: The response of the AWS API, for an update that must name every member.
    description: Mapping[str, Any]


class OwnSettings:
    """A kind of resources that have their settings themselves."""

    def targets(self, _properties: Mapping[str, Any], /) -> Sequence[Any]:
        return ()


class Comparison(Protocol):
    """One kind. Its methods raise what the AWS calls raise, and `MissingResourceError` for a deleted resource."""

    @property
    def kind(self) -> Kind: ...

    @property
    def template_types(self) -> Sequence[str]: ...

    def targets(self, properties: Mapping[str, Any], /) -> Sequence[Any]:
        """References to the resources that have the settings, or nothing for the resource itself."""

    def settings(self, properties: Mapping[str, Any]) -> Mapping[str, Any]:
        """The compared ones of the template, with the defaults that a change outside of it would leave."""

    def read(self, expected: Expected) -> Found: ...

    def calls(self, names: Sequence[str]) -> Iterable[Sequence[str]]:
        """The settings that differ, those of one call together."""

    def restore(self, expected: Expected, found: Found, names: Sequence[str]) -> None:
        """Set these settings as the template says, with one changing call."""


def canonical(value: Any) -> Any:
    """A form that is equal for what an AWS service treats as equal: `5` and `"5"`, JSON text and its value, order."""
    match value:
        case bool():
            found: Any = str(value).lower()
        case int() | float():
            found = f"{value:.12g}"
        case str() if value.startswith("{"):
            found = _decoded(value)
        case Mapping():
            members = {name: canonical(member) for name, member in value.items()}
            found = {name: member for name, member in members.items() if member not in (None, {}, [])}
        case list() | tuple():
            items = sorted((canonical(item) for item in value), key=lambda item: json.dumps(item, sort_keys=True))
            # A policy may write a list of one as its only entry.
            found = items[0] if len(items) == 1 else items
        case _:
            found = value
    return found


def _decoded(text: str) -> Any:
    try:
        return canonical(json.loads(text))
    except ValueError:
        return text


def picked(properties: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    return {name: properties[name] for name in names if name in properties}
