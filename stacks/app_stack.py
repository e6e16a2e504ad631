"""`AppStack`: what every stack of the app has in common: name, permissions boundary and bootstrap qualifier."""

from aws_cdk import DefaultStackSynthesizer, PermissionsBoundary, Stack
from constructs import Construct

from tidemill.cdk.config import StageConfig
from tidemill.cdk.tags import tag


class AppStack(Stack):
    """Bound to no account or region: it is synthesised without either, and goes wherever the credentials point."""

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
