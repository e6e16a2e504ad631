"""`AppStack`: what every stack of the app has in common: name, tags, boundary, bootstrap, code."""

import json
from collections.abc import Mapping

from aws_cdk import DefaultStackSynthesizer, PermissionsBoundary, Stack, Tags
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from tidemill import names
from tidemill.cdk.config import StageConfig
from tidemill.cdk.job_function import JobFunction


class AppStack(Stack):
    """Bound to no account or region: it is synthesised without either, and goes wherever the credentials point."""

    def __init__(self, scope: Construct, part: str, *, config: StageConfig, asset: str, description: str) -> None:
        super().__init__(
            scope,
            f"{config.name}-{part}",
            description=description,
            synthesizer=DefaultStackSynthesizer(qualifier=config.qualifier or None),
            permissions_boundary=_boundary(config.permissions_boundary),
            termination_protection=config.protected,
        )
        tags = Tags.of(self)
        tags.add(names.Tag.APP, names.APP)
        tags.add(names.Tag.STAGE, config.label)
        for key, value in config.tags:
            tags.add(key, value)
        self.config = config
        #: For functions that are told who calls: how to tell.
        self.callers: Mapping[str, str] = {
            names.Env.JWT: json.dumps({"issuer": config.jwt_issuer, "audience": config.jwt_audience})
            if config.jwt_issuer
            else ""
        }
        #: One for each stack, as CDK wants it; the bytes are the same.
        self.code = lambda_.Code.from_asset(asset)

    def api_function(self, verb: str, environment: Mapping[str, str], *, handler: str = "") -> JobFunction:
        """A function that answers callers of an API, who wait."""
        return self.function(verb, environment, timeout_seconds=self.config.api_timeout_seconds, handler=handler)

    def function(
        self, verb: str, environment: Mapping[str, str], *, timeout_seconds: int, handler: str = ""
    ) -> JobFunction:
        return JobFunction(
            self,
            verb.capitalize(),
            config=self.config,
            code=self.code,
            verb=verb,
            timeout_seconds=timeout_seconds,
            environment=environment,
            handler=handler,
        )


def _boundary(policy: str) -> PermissionsBoundary | None:
    if not policy:
        return None
    return PermissionsBoundary.from_arn(policy) if policy.startswith("arn:") else PermissionsBoundary.from_name(policy)
