"""`FunctionFactory`: makes the functions of one scope, with the code and the settings that they share."""

import json
from collections.abc import Mapping

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from tidemill import names
from tidemill.cdk.config import StageConfig
from tidemill.cdk.job_function import JobFunction


class FunctionFactory:
    """`asset` is the folder that `asset.build` returns."""

    def __init__(self, scope: Construct, *, config: StageConfig, asset: str) -> None:
        self.scope = scope
        self.config = config
        #: One for each stack, as CDK requires; the bytes are the same.
        self.code = lambda_.Code.from_asset(asset)
        #: For functions that verify their callers: which authoriser the stage has.
        self.callers: Mapping[str, str] = {
            names.Env.JWT: json.dumps({"issuer": config.jwt_issuer, "audience": config.jwt_audience})
            if config.jwt_issuer
            else ""
        }

    def api_function(self, verb: str, environment: Mapping[str, str], *, handler: str = "") -> JobFunction:
        """A function behind an HTTP API, whose callers wait for its answer."""
        return self.function(verb, environment, timeout_seconds=self.config.api_timeout_seconds, handler=handler)

    def function(
        self, verb: str, environment: Mapping[str, str], *, timeout_seconds: int, handler: str = ""
    ) -> JobFunction:
        """`handler` as Lambda takes it; by default the entry point of the engine that `verb` names."""
        return JobFunction(
            self.scope,
            verb.capitalize(),
            config=self.config,
            code=self.code,
            verb=verb,
            timeout_seconds=timeout_seconds,
            environment=environment,
            handler=handler,
        )
