"""The template of a deployed stack."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tidemill.aws.clients import translated

if TYPE_CHECKING:
    from mypy_boto3_cloudformation import CloudFormationClient


def deployed_template(client: "CloudFormationClient", stack: str) -> Mapping[str, Any]:
    with translated():
        template: Any = client.get_template(StackName=stack)["TemplateBody"]
    # The SDK decodes a template that is a JSON object.
    decoded: Mapping[str, Any] = json.loads(template) if isinstance(template, str) else template
    return decoded
