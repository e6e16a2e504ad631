"""Asks a deployed function for something that only it can do or tell."""

import json
from collections.abc import Mapping
from typing import Any

from tidemill.aws.clients import invocations, translated
from tidemill.domain.errors import TidemillError
from tidemill.names import LIVE_ALIAS
from tidemill.operator.deployments.deployment import Deployment


class FunctionFailedError(TidemillError):
    """A function that was called ended with an error."""


def ask(deployment: Deployment, verb: str, event: Mapping[str, Any]) -> Any:
    """The decoded answer of the function. Raises `FunctionFailedError` with its error."""
    with translated():
        answer = invocations().invoke(
            FunctionName=deployment.functions[verb], Qualifier=LIVE_ALIAS, Payload=json.dumps(event)
        )
    decoded: Any = json.loads(answer["Payload"].read() or b"null")
    if "FunctionError" in answer:
        raise FunctionFailedError(f"the function {verb} failed: {decoded.get('errorMessage', decoded)}")
    return decoded
