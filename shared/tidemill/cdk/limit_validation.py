"""`LimitValidation`: fails the synthesis of an app that exceeds a documented limit."""

import json
from pathlib import Path

import jsii
from aws_cdk import (
    IPolicyValidationContext,
    IPolicyValidationPlugin,
    PolicyValidationPluginReport,
    PolicyViolatingResource,
    PolicyViolation,
)

from tidemill.cdk.template_limits import measured


@jsii.implements(IPolicyValidationPlugin)
class LimitValidation:
    """It names each resource that exceeds a limit, with its number."""

    @property
    def name(self) -> str:
        return "tidemill-limits"

    @property
    def version(self) -> str:
        return "1"

    @property
    def rule_ids(self) -> None:
        return None

    def validate(self, context: IPolicyValidationContext) -> PolicyValidationPluginReport:
        violations = [
            PolicyViolation(
                rule_name=each.limit.text,
                description=str(each),
                violating_resources=[
                    PolicyViolatingResource(
                        resource_logical_id=each.resource or "-", template_path=path, locations=["Properties"]
                    )
                ],
            )
            for path in context.template_paths
            for each in measured(json.loads(Path(path).read_bytes()), stack=Path(path).name.partition(".")[0])
            if each.exceeded
        ]
        return PolicyValidationPluginReport(success=not violations, violations=violations)
