"""Asks the function `tick` for something that only the deployed code can do, since it knows the job types."""

import json
from collections.abc import Mapping
from typing import Any

from tidemill.aws.clients import invocations, translated
from tidemill.cli.errors import CommandError
from tidemill.cli.formatting import visible
from tidemill.cli.installation import Installation
from tidemill.names import LIVE_ALIAS


def ask_tick(installation: Installation, event: Mapping[str, Any]) -> Mapping[str, Any]:
    """Raises `CommandError` with the error of the function."""
    with translated():
        answer = invocations().invoke(
            FunctionName=installation.deployment.functions["tick"], Qualifier=LIVE_ALIAS, Payload=json.dumps(event)
        )
    decoded: Any = json.loads(answer["Payload"].read())
    if "FunctionError" in answer:
        raise CommandError(f"the function tick failed: {visible(str(decoded.get('errorMessage', decoded)))}")
    return dict(decoded)
