"""`ScheduledCall`: calls one function on schedules, and keeps the calls that failed."""

from collections.abc import Mapping

from aws_cdk import Aws, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from tidemill import names
from tidemill.cdk.functions.job_function import JobFunction
from tidemill.cdk.functions.schedule_retries import (
    DELIVERY_SECONDS,
    DELIVERY_TRIES,
    FUNCTION_RETRIES,
    FUNCTION_SECONDS,
    PROMPT_SECONDS,
)


class ScheduledCall(Construct):
    """The schedules of one function. Calls are asynchronous, and a call may arrive twice.

    Missed calls go to `missed_calls`: EventBridge Scheduler sends those that Lambda never accepted, and Lambda those
    whose every try failed. Without this queue, a call is tried once and then dropped. Use that if the next call also
    does the work of a missed one.
    """

    def __init__(self, scope: Construct, id_: str, *, function: JobFunction, missed_calls: sqs.Queue | None) -> None:
        super().__init__(scope, id_)
        self._function = function.live
        self._missed_calls = missed_calls
        self._role = iam.Role(
            self,
            "Role",
            # A schedule in another account must not assume this role.
            assumed_by=iam.ServicePrincipal("scheduler.amazonaws.com").with_conditions(
                {"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}}
            ),
        )
        self._allow("lambda:InvokeFunction", self._function.function_arn)
        if missed_calls:
            self._allow("sqs:SendMessage", missed_calls.queue_arn)
            function.allow(["sqs:SendMessage"], [missed_calls.queue_arn])
        invocations = lambda_.CfnEventInvokeConfig(
            self,
            "Invocations",
            function_name=function.function.function_name,
            qualifier=names.LIVE_ALIAS,
            maximum_retry_attempts=FUNCTION_RETRIES if missed_calls else 0,
            maximum_event_age_in_seconds=FUNCTION_SECONDS if missed_calls else PROMPT_SECONDS,
            destination_config=lambda_.CfnEventInvokeConfig.DestinationConfigProperty(
                on_failure=lambda_.CfnEventInvokeConfig.OnFailureProperty(destination=missed_calls.queue_arn)
            )
            if missed_calls
            else None,
        )
        invocations.node.add_dependency(function.live)

    def add_schedule(self, id_: str, expression: str, *, event: Mapping[str, str] | None = None) -> None:
        """Call the function with `event` at the times of `expression` (in UTC)."""
        missed_calls = self._missed_calls
        scheduler.CfnSchedule(
            self,
            id_,
            schedule_expression=expression,
            flexible_time_window=scheduler.CfnSchedule.FlexibleTimeWindowProperty(mode="OFF"),
            target=scheduler.CfnSchedule.TargetProperty(
                arn=self._function.function_arn,
                role_arn=self._role.role_arn,
                input=Stack.of(self).to_json_string(event or {}),
                retry_policy=scheduler.CfnSchedule.RetryPolicyProperty(
                    maximum_retry_attempts=DELIVERY_TRIES if missed_calls else 0,
                    maximum_event_age_in_seconds=DELIVERY_SECONDS if missed_calls else PROMPT_SECONDS,
                ),
                dead_letter_config=scheduler.CfnSchedule.DeadLetterConfigProperty(arn=missed_calls.queue_arn)
                if missed_calls
                else None,
            ),
        )

    def _allow(self, action: str, resource: str) -> None:
        self._role.add_to_policy(iam.PolicyStatement(actions=[action], resources=[resource]))
