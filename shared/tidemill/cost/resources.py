"""Resources of synthesised templates."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def properties_of(resources: Iterable[Mapping[str, Any]], type_: str) -> Sequence[Mapping[str, Any]]:
    """Of each resource that has the type."""
    return [resource.get("Properties", {}) for resource in resources if resource["Type"] == type_]
