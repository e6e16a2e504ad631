"""Resources of synthesised templates, by logical id. Ids follow from those that an app chose, so they tell no kind."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any


def properties_of(resources: Iterable[Mapping[str, Any]], type_: str) -> Sequence[Mapping[str, Any]]:
    """Yield the properties of each resource that has the type."""
    return [resource.get("Properties", {}) for resource in resources if resource["Type"] == type_]


def function_of(resources: Mapping[str, Mapping[str, Any]], reference: Any) -> Mapping[str, Any]:
    """The properties of the function that is referred to, also by its alias.

    Empty for a name or an ARN as text, and for a function of another stack.
    """
    id_ = reference.get("Ref") if isinstance(reference, Mapping) else None
    resource = resources.get(id_, {}) if isinstance(id_, str) else {}
    properties: Mapping[str, Any] = resource.get("Properties", {})
    if resource.get("Type") == "AWS::Lambda::Alias":
        return function_of(resources, properties["FunctionName"])
    return properties if resource.get("Type") == "AWS::Lambda::Function" else {}
