"""`AppStack`: base of every stack of the app. It sets the name, permissions boundary and bootstrap qualifier."""

from aws_cdk import DefaultStackSynthesizer, PermissionsBoundary, Stack
from constructs import Construct

from tidemill.cdk.config import StageConfig
from tidemill.cdk.tags import tag


class AppStack(Stack):
    """Independent of account and region: the credentials at deployment select both."""

    def __init__(self, scope: Construct, part: str, *, config: StageConfig, description: str) -> None:
        super().__init__(
            scope,
            f"{config.name}-{part}",
            description=description,
            synthesizer=DefaultStackSynthesizer(qualifier=config.qualifier or None),
            permissions_boundary=_boundary(config.permissions_boundary),
            termination_protection=config.protected,
        )
        tag(self, config)


def _boundary(policy: str) -> PermissionsBoundary | None:
    if not policy:
        return None
    return PermissionsBoundary.from_arn(policy) if policy.startswith("arn:") else PermissionsBoundary.from_name(policy)
