"""Runs a command line of the AWS CLI through the SDK, which the app has, so that a drill needs no AWS CLI.

It takes what the runbook uses: flags, texts, numbers, JSON, and `Name=value` for a structure. It raises `ValueError`
for everything that the model of the service does not have.
"""

import json
from collections.abc import Callable, Sequence
from typing import Any, Final

from botocore import xform_name

#: The value of a flag by its prefix.
_TRUE_FALSE: Final = {"": True, "no-": False}


def run(words: Sequence[str], client: Callable[[str], Any]) -> None:
    """`words` begins with the service."""
    service, operation, *arguments = words
    sdk = client(service)
    if operation == "wait":
        state, *arguments = arguments
        waiter = sdk.get_waiter(state.replace("-", "_"))
        shape = sdk.meta.service_model.operation_model(waiter.config.operation).input_shape
        waiter.wait(**_parameters(arguments, shape.members))
        return
    method = operation.replace("-", "_")
    if method not in sdk.meta.method_to_api_mapping:
        raise ValueError(f"aws {service} has no operation {operation}")
    model = sdk.meta.service_model.operation_model(sdk.meta.method_to_api_mapping[method]).input_shape
    getattr(sdk, method)(**_parameters(arguments, model.members))


def _parameters(arguments: Sequence[str], members: Any) -> dict[str, Any]:
    names = {xform_name(name, "-"): name for name in members}
    found: dict[str, Any] = {}
    rest = list(arguments)
    while rest:
        option = rest.pop(0).removeprefix("--")
        if option == "cli-input-json":
            found |= json.loads(rest.pop(0))
            continue
        prefix = "no-" if option.startswith("no-") and option not in names else ""
        name = names.get(option.removeprefix(prefix))
        if name is None:
            raise ValueError(f"no parameter --{option}")
        shape = members[name]
        found[name] = _TRUE_FALSE[prefix] if shape.type_name == "boolean" else _value(rest.pop(0), shape)
    return found


def _value(text: str, shape: Any) -> Any:
    if text[:1] in {"{", "["}:
        return json.loads(text)
    if shape.type_name == "structure":
        pairs = (pair.split("=", 1) for pair in text.split(","))
        return {name: _value(value, shape.members[name]) for name, value in pairs}
    return int(text) if shape.type_name in {"integer", "long"} else text
