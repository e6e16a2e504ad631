"""`Clock`: calls one function at set times, and keeps what it could not deliver."""

from collections.abc import Mapping

from aws_cdk import Aws, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from tidemill.cdk.job_function import JobFunction
from tidemill.cdk.schedule_retries import (
    DELIVERY_SECONDS,
    DELIVERY_TRIES,
    FUNCTION_RETRIES,
    FUNCTION_SECONDS,
    PROMPT_SECONDS,
)


class Clock(Construct):
    """The clock of one function, which it calls asynchronously and perhaps twice.

    What is missed goes to `missed`: from the scheduler when Lambda never took the call, from Lambda when the function
    failed each time. Without it, a call is made once and forgotten: for what the next one makes up for.
    """

    def __init__(self, scope: Construct, id_: str, *, function: JobFunction, missed: sqs.Queue | None) -> None:
        super().__init__(scope, id_)
        self._function = function.function
        self._missed = missed
        self._role = iam.Role(
            self,
            "Role",
            # Whoever can make schedules in another account must not lend our role to theirs.
            assumed_by=iam.ServicePrincipal("scheduler.amazonaws.com").with_conditions(
                {"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}}
            ),
        )
        self._allow("lambda:InvokeFunction", self._function.function_arn)
        if missed:
            self._allow("sqs:SendMessage", missed.queue_arn)
            function.allow(["sqs:SendMessage"], [missed.queue_arn])
        lambda_.CfnEventInvokeConfig(
            self,
            "Invocations",
            function_name=self._function.function_name,
            qualifier="$LATEST",
            maximum_retry_attempts=FUNCTION_RETRIES if missed else 0,
            maximum_event_age_in_seconds=FUNCTION_SECONDS if missed else PROMPT_SECONDS,
            destination_config=lambda_.CfnEventInvokeConfig.DestinationConfigProperty(
                on_failure=lambda_.CfnEventInvokeConfig.OnFailureProperty(destination=missed.queue_arn)
            )
            if missed
            else None,
        )

    def call(self, id_: str, expression: str, *, says: Mapping[str, str] | None = None) -> None:
        """Whenever `expression` (UTC) says so, with `says` as the event."""
        missed = self._missed
        scheduler.CfnSchedule(
            self,
            id_,
            schedule_expression=expression,
            flexible_time_window=scheduler.CfnSchedule.FlexibleTimeWindowProperty(mode="OFF"),
            target=scheduler.CfnSchedule.TargetProperty(
                arn=self._function.function_arn,
                role_arn=self._role.role_arn,
                input=Stack.of(self).to_json_string(says or {}),
                retry_policy=scheduler.CfnSchedule.RetryPolicyProperty(
                    maximum_retry_attempts=DELIVERY_TRIES if missed else 0,
                    maximum_event_age_in_seconds=DELIVERY_SECONDS if missed else PROMPT_SECONDS,
                ),
                dead_letter_config=scheduler.CfnSchedule.DeadLetterConfigProperty(arn=missed.queue_arn)
                if missed
                else None,
            ),
        )

    def _allow(self, action: str, resource: str) -> None:
        self._role.add_to_policy(iam.PolicyStatement(actions=[action], resources=[resource]))
