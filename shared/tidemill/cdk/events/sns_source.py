"""`SnsSource`: the messages of a topic become events of Tidemill."""

from typing import Any

from aws_cdk import aws_sns as sns

from tidemill.cdk.events.event_source import EventSource
from tidemill.cdk.functions.function_factory import FunctionFactory
from tidemill.cdk.pipeline import Pipeline
from tidemill.cdk.synth_errors import SynthError


class SnsSource(EventSource):
    """A standard topic of the same account, not encrypted or with a key that SNS may use.

    `filter_policy` is that of the subscription.
    """

    def __init__(
        self,
        functions: FunctionFactory,
        source: str,
        *,
        pipeline: Pipeline,
        tenant: str,
        topic: sns.ITopic,
        filter_policy: dict[str, Any] | None = None,
    ) -> None:
        if topic.fifo:
            # The subscription of a FIFO topic has a FIFO queue for dead letters, and a source has a standard one:
            # https://docs.aws.amazon.com/sns/latest/dg/sns-dead-letter-queues.html
            raise SynthError(
                f"source {source!r}: its topic is a FIFO topic, which cannot be a source. Use a standard topic, or "
                "subscribe a FIFO queue with a function of your own that publishes events"
            )
        super().__init__(functions, source, pipeline=pipeline, tenant=tenant, record="SnsRecord")
        by_topic = {"ArnEquals": {"aws:SourceArn": topic.topic_arn}}
        self.let_send("sns.amazonaws.com", by_topic)
        # A message that SNS cannot deliver is lost without it:
        # https://docs.aws.amazon.com/sns/latest/dg/sns-dead-letter-queues.html
        self.let_send("sns.amazonaws.com", by_topic, queue=self.dead_letters)
        subscription = sns.CfnSubscription(
            self,
            "Subscription",
            topic_arn=topic.topic_arn,
            protocol="sqs",
            endpoint=self.queue.queue_arn,
            # The id of the message, by which duplicates are known, is in the body only without raw delivery.
            raw_message_delivery=False,
            redrive_policy={"deadLetterTargetArn": self.dead_letters.queue_arn},
            filter_policy=filter_policy,
        )
        for queue in (self.queue, self.dead_letters):
            subscription.node.add_dependency(queue.node.find_child("Policy"))
