"""`JobFunction`: a Lambda function with its own role, log group, versions and alias. Every function is made here."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

from aws_cdk import Acknowledgment, Duration, RemovalPolicy, Validations
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from tidemill import names
from tidemill.cdk.config import NEWEST_TESTED_PYTHON, SNAP_START_PYTHON_VERSIONS, Architecture, StageConfig
from tidemill.cdk.functions.log_group import log_group
from tidemill.metrics import METRIC_NAMESPACE

DEFAULT_MEMORY_MB: Final = 512
#: Without them, a change of a tag would ask Lambda for a new version, and Lambda publishes none for it.
#: https://docs.aws.amazon.com/cdk/v2/guide/featureflags.html
VERSION_FLAGS: Final = ("@aws-cdk/aws-lambda:recognizeVersionProps", "@aws-cdk/aws-lambda:recognizeLayerVersion")
#: Length of the version in log lines.
VERSION_CHARACTERS: Final = 7
ARCHITECTURES: Final = {
    Architecture.ARM64: lambda_.Architecture.ARM_64,
    Architecture.X86_64: lambda_.Architecture.X86_64,
}


class JobFunction(Construct):
    """A function that has only the rights that `allow` grants.

    It has no AWS managed policy, because `AWSLambdaBasicExecutionRole` may write to every log group of the account. It
    has no active tracing, which needs `xray:Put*` on `*`. Documents and messages carry the trace context without it.

    Each deployment that changes the code or the configuration publishes a version, and points the alias `live` to it.
    Every caller calls `live`, so `tidemill rollback` changes the version without a deployment.
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        config: StageConfig,
        code: lambda_.AssetCode,
        verb: str,
        timeout_seconds: int,
        environment: Mapping[str, str],
        memory_mb: int = DEFAULT_MEMORY_MB,
        reserved_concurrency: int | None = None,
        handler: str = "",
        may_recurse: bool = False,
    ) -> None:
        """`may_recurse`: it sends messages to the queue that invokes it. Lambda would stop a chain of some 16 of them.

        https://docs.aws.amazon.com/lambda/latest/dg/invocation-recursion.html
        """
        super().__init__(scope, id_)
        for flag in VERSION_FLAGS:
            self.node.set_context(flag, True)
        #: Name of the entry point, or of the package in `functions`; also the service name in logs.
        self.verb = verb
        self.timeout = Duration.seconds(timeout_seconds)
        self.log_group = log_group(self, "Logs", config)
        self._role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"))
        self.function = lambda_.Function(
            self,
            "Function",
            description=f"{config.name}: {verb}",
            code=code,
            handler=handler or f"tidemill.entrypoints.{verb}.handle",
            runtime=lambda_.Runtime(
                f"python{config.python_version}",
                lambda_.RuntimeFamily.PYTHON,
                supports_inline_code=True,
                supports_snap_start=config.python_version in SNAP_START_PYTHON_VERSIONS,
            ),
            snap_start=lambda_.SnapStartConf.ON_PUBLISHED_VERSIONS if config.snap_start else None,
            architecture=ARCHITECTURES[config.architecture],
            timeout=self.timeout,
            memory_size=memory_mb,
            reserved_concurrent_executions=reserved_concurrency,
            recursive_loop=lambda_.RecursiveLoop.ALLOW if may_recurse else None,
            role=self._role,
            log_group=self.log_group,
            layers=[lambda_.LayerVersion.from_layer_version_arn(self, "Tracing", config.tracing_layer)]
            if config.tracing_layer
            else None,
            # A rollback needs the older versions. A version of a deployment that failed is deleted: Lambda does not
            # publish the same code and configuration twice in a row, so the next deployment of it would fail.
            # https://docs.aws.amazon.com/lambda/latest/api/API_PublishVersion.html
            current_version_options=lambda_.VersionOptions(removal_policy=RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE),
            environment={
                names.Env.STAGE: config.label,
                # The folder of the asset has the digest of its content as its name.
                names.Env.CODE_VERSION: Path(code.path).name[:VERSION_CHARACTERS],
                **({} if config.log_exception_text else {names.Env.WITHHOLD_EXCEPTION_TEXT: "true"}),
                **({} if config.log_sample_rate == 1 else {names.Env.LOG_SAMPLE_RATE: f"{config.log_sample_rate:g}"}),
                **({names.Env.TRACING: "true"} if config.tracing else {}),
                "POWERTOOLS_SERVICE_NAME": f"{names.APP}-{verb}",
                "POWERTOOLS_METRICS_NAMESPACE": METRIC_NAMESPACE,
                **environment,
            },
        )
        #: Call this, and not the function: events, schedules, routes and topics.
        self.live = lambda_.Alias(self, "Live", alias_name=names.LIVE_ALIAS, version=self.function.current_version)
        if config.python_version == NEWEST_TESTED_PYTHON:
            reason = "It is the newest Python on which all tests have passed."
            Validations.of(self.function).acknowledge(Acknowledgment(id="AwsSolutions-L1", reason=reason))
        # `AWSLambdaBasicExecutionRole` without `CreateLogGroup`, and only for the function's own log group.
        self.allow(["logs:CreateLogStream", "logs:PutLogEvents"], [self.log_group.log_group_arn])

    @property
    def role_id(self) -> str:
        """The unique id of its role, by which an API names it as a caller."""
        return cast(iam.CfnRole, self._role.node.default_child).attr_role_id

    @property
    def role_name(self) -> str:
        return self._role.role_name

    def allow(
        self, actions: Sequence[str], resources: Sequence[str], *, only_if: Mapping[str, Any] | None = None
    ) -> None:
        """Allow these actions and no others, `only_if` these conditions of IAM hold.

        CDK's grant methods would also grant actions that are not needed.
        """
        self._role.add_to_policy(
            iam.PolicyStatement(actions=list(actions), resources=list(resources), conditions=only_if)
        )

    def allow_on_dependents(self, id_: str, rights: Mapping[str, Sequence[str]]) -> None:
        """Allow each of these actions on its resources, which may depend on the function.

        CloudFormation creates the function after the role's own policy, so that policy cannot name them.
        """
        statements = [
            iam.PolicyStatement(actions=[action], resources=list(resources)) for action, resources in rights.items()
        ]
        iam.Policy(self, id_, roles=[self._role], statements=statements)
