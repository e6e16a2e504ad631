"""`FunctionFactory`: creates the functions of one scope, with shared code and settings."""

import json
from collections.abc import Mapping

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from tidemill import names
from tidemill.cdk.config import StageConfig
from tidemill.cdk.functions.job_function import DEFAULT_MEMORY_MB, JobFunction


class FunctionFactory:
    """`asset` is the folder that `asset.build` returns."""

    def __init__(self, scope: Construct, *, config: StageConfig, asset: str) -> None:
        self.scope = scope
        self.config = config
        #: CDK requires one code object for each stack. The bytes are the same.
        self.code = lambda_.Code.from_asset(asset)
        #: Environment of functions that identify their callers: the token issuer of the stage, or empty for SigV4.
        self.callers: Mapping[str, str] = {
            names.Env.JWT: json.dumps({"issuer": config.jwt_issuer, "audience": config.jwt_audience})
            if config.jwt_issuer
            else ""
        }

    def api_function(
        self, verb: str, environment: Mapping[str, str], *, handler: str = "", is_open: bool = False
    ) -> JobFunction:
        """A function behind an HTTP API: its timeout is shorter than the one of the API.

        `is_open` limits the concurrency of a function whose routes are public.
        """
        return self.function(
            verb,
            environment,
            timeout_seconds=self.config.api_timeout_seconds,
            handler=handler,
            reserved_concurrency=self.config.open_concurrency if is_open else None,
        )

    def function(
        self,
        verb: str,
        environment: Mapping[str, str],
        *,
        timeout_seconds: int,
        memory_mb: int = DEFAULT_MEMORY_MB,
        handler: str = "",
        reserved_concurrency: int | None = None,
    ) -> JobFunction:
        """`handler` in Lambda's notation. The default is the engine's entry point named `verb`."""
        return JobFunction(
            self.scope,
            verb.capitalize(),
            config=self.config,
            code=self.code,
            verb=verb,
            timeout_seconds=timeout_seconds,
            environment=environment,
            memory_mb=memory_mb,
            handler=handler,
            reserved_concurrency=reserved_concurrency,
        )
