"""`GradualDeployment`: CodeDeploy shifts the calls of functions to a new version, and back when an alarm fires."""

from collections.abc import Mapping, Sequence
from typing import Final, cast

from aws_cdk import Acknowledgment, CfnCodeDeployLambdaAliasUpdate, CfnUpdatePolicy, Validations
from aws_cdk import aws_codedeploy as codedeploy
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from tidemill.application.operations.objectives import FAST_BURN
from tidemill.cdk.alarms.burn_rate_alarms import part_id
from tidemill.cdk.functions.job_function import JobFunction
from tidemill.names import LIVE_ALIAS, Lane

#: A tenth of the calls for ten minutes, which is twice the time in which a page fires; then all calls.
#: https://docs.aws.amazon.com/codedeploy/latest/userguide/deployment-configurations.html
SHIFT: Final = "CodeDeployDefault.LambdaCanary10Percent10Minutes"
#: The pages that read one metric or one expression, and the parts of the others: no page of CodeDeploy says that it
#: reads composites. Not the parts that are on in a healthy system. CodeDeploy takes at most ten.
#: https://docs.aws.amazon.com/codedeploy/latest/APIReference/API_AlarmConfiguration.html
ALARMS: Final = (
    part_id("FailedSubmissions", FAST_BURN.short),
    part_id("LateStarts", FAST_BURN.short),
    *(f"LateCanary-{lane}" for lane in Lane),
    "FailedJobs",
    *(f"FailedJobs-{lane}" for lane in Lane if lane is not Lane.CRITICAL),
    "BrokenInvariant",
)


def shift_alarms(names: Mapping[str, str]) -> list[str]:
    """The names of the alarms that end a shift. `names` is by the id of the entry."""
    return [names[id_] for id_ in ALARMS if id_ in names]


class GradualDeployment(Construct):
    """One for the functions of a stack. All shift at the same time.

    CloudFormation waits for the shift. If one of the alarms fires, CodeDeploy points the alias back at once, and
    CloudFormation rolls back the whole stack:
    https://github.com/aws/serverless-application-model/blob/develop/docs/safe_lambda_deployments.rst
    """

    def __init__(
        self, scope: Construct, id_: str, *, functions: Sequence[JobFunction], alarm_names: Sequence[str]
    ) -> None:
        super().__init__(scope, id_)
        self._application = codedeploy.CfnApplication(self, "Application", compute_platform="Lambda")
        self._role = self._service_role(functions)
        for function in functions:
            self._shift(function, alarm_names)

    def _shift(self, function: JobFunction, alarm_names: Sequence[str]) -> None:
        group = codedeploy.CfnDeploymentGroup(
            function,
            "Shift",
            application_name=self._application.ref,
            service_role_arn=self._role.role_arn,
            deployment_config_name=SHIFT,
            deployment_style=codedeploy.CfnDeploymentGroup.DeploymentStyleProperty(
                deployment_type="BLUE_GREEN", deployment_option="WITH_TRAFFIC_CONTROL"
            ),
            alarm_configuration=codedeploy.CfnDeploymentGroup.AlarmConfigurationProperty(
                enabled=True,
                alarms=[codedeploy.CfnDeploymentGroup.AlarmProperty(name=name) for name in alarm_names],
            ),
            auto_rollback_configuration=codedeploy.CfnDeploymentGroup.AutoRollbackConfigurationProperty(
                enabled=True,
                events=["DEPLOYMENT_FAILURE", "DEPLOYMENT_STOP_ON_ALARM", "DEPLOYMENT_STOP_ON_REQUEST"],
            ),
        )
        # With the rights, too: CodeDeploy acts on the alias as soon as the group exists.
        group.node.add_dependency(self._role)
        # https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/aws-attribute-updatepolicy.html
        cast(lambda_.CfnAlias, function.live.node.default_child).cfn_options.update_policy = CfnUpdatePolicy(
            code_deploy_lambda_alias_update=CfnCodeDeployLambdaAliasUpdate(
                application_name=self._application.ref, deployment_group_name=group.ref
            )
        )

    def _service_role(self, functions: Sequence[JobFunction]) -> iam.Role:
        """It may shift these aliases only. The managed policy of CodeDeploy may update every alias of the account."""
        role = iam.Role(self, "Role", assumed_by=iam.ServicePrincipal("codedeploy.amazonaws.com"))
        arns = [function.function.function_arn for function in functions]
        role.add_to_policy(
            iam.PolicyStatement(
                actions=["lambda:GetAlias", "lambda:UpdateAlias", "lambda:GetProvisionedConcurrencyConfig"],
                # Built from the name: the alias itself depends on this role.
                resources=[*arns, *(f"{arn}:{LIVE_ALIAS}" for arn in arns)],
            )
        )
        role.add_to_policy(iam.PolicyStatement(actions=["cloudwatch:DescribeAlarms"], resources=["*"]))
        Validations.of(role).acknowledge(
            Acknowledgment(id="AwsSolutions-IAM5[Resource::*]", reason="CodeDeploy reads alarms as a list.")
        )
        return role
