"""`AlarmTopics`: the SNS topic of pages and that of tickets, so that one subscription of each receives them all."""

from collections.abc import Sequence

from aws_cdk import Acknowledgment, Annotations, Aws, Validations
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from tidemill.cdk.config import StageConfig
from tidemill.cdk.functions.job_function import JobFunction


class AlarmTopics:
    """Created in `scope`."""

    def __init__(self, scope: Construct, *, config: StageConfig) -> None:
        self.pages = AlarmTopic(scope, "Alarms", config=config, kind="pages", email=config.alarm_email)
        self.tickets = AlarmTopic(scope, "Tickets", config=config, kind="tickets", email=config.ticket_email)
        if config.metric_math:
            self.pages.warn_without(config.alarm_email, setting="alarm_email")
            self.tickets.warn_without(config.ticket_email, setting="ticket_email")


class AlarmTopic(Construct):
    """Not encrypted with a KMS key.

    CloudWatch alarms may not use the AWS-managed key, so their messages would be lost. A customer-managed key would
    protect nothing, because the texts hold no data of jobs.
    """

    def __init__(self, scope: Construct, id_: str, *, config: StageConfig, kind: str, email: str) -> None:
        super().__init__(scope, id_)
        self._kind = kind
        self.topic = sns.Topic(self, "Topic", display_name=f"{config.name} {kind}", enforce_ssl=True)
        # A custom policy, such as the one that enforces TLS, replaces the default policy that lets CloudWatch publish:
        # https://docs.aws.amazon.com/sns/latest/dg/sns-access-policy-use-cases.html
        self.topic.add_to_resource_policy(
            iam.PolicyStatement(
                sid="AlarmsMayPublish",
                principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
                actions=["sns:Publish"],
                resources=[self.topic.topic_arn],
                conditions={"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}},
            )
        )
        if email:
            self.topic.add_subscription(subscriptions.EmailSubscription(email))

    def warn_without(self, email: str, *, setting: str) -> None:
        """Warn at synth that the topic has no subscriber, so that its alarms reach no operator."""
        if not email:
            Annotations.of(self).add_warning_v2(
                f"tidemill:no-subscriber-{self._kind}",
                f"No address receives the {self._kind}: set -c {setting}=ADDRESS, or subscribe to the topic yourself.",
            )

    def call(self, function: JobFunction, *, alarm_names: Sequence[str], missed_calls: sqs.Queue) -> None:
        """Call `function` when one of the alarms with these names fires, and when it resolves.

        SNS sends a call that Lambda never accepted, after all its retries, to `missed_calls`:
        https://docs.aws.amazon.com/sns/latest/dg/sns-dead-letter-queues.html

        The filter is by name, so that an alarm that the function itself causes can never call it again.
        https://docs.aws.amazon.com/sns/latest/dg/sns-subscription-filter-policies.html
        """
        subscription = self.topic.add_subscription(
            subscriptions.LambdaSubscription(
                function.live,
                dead_letter_queue=missed_calls,
                filter_policy_with_message_body={
                    "AlarmName": sns.FilterOrPolicy.filter(
                        sns.SubscriptionFilter.string_filter(allowlist=list(alarm_names))
                    ),
                    "NewStateValue": sns.FilterOrPolicy.filter(
                        sns.SubscriptionFilter.string_filter(allowlist=["ALARM", "OK"])
                    ),
                },
            )
        )
        reason = "SNS calls the version that an alias points to, as every caller of Lambda does."
        Validations.of(subscription).acknowledge(Acknowledgment(id="CloudFormation-Validate::W3694", reason=reason))
