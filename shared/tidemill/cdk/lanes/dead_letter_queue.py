"""Queues whose messages an operator handles: dead-letter messages, unpublished records and missed scheduled calls."""

from collections.abc import Sequence
from typing import cast

from aws_cdk import Acknowledgment, Duration, Validations
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from tidemill.cdk.lanes.lane_config import DLQ_RETENTION_DAYS


def dead_letter_queue(scope: Construct, id_: str, *, sources: Sequence[str] = ()) -> sqs.Queue:
    """A queue with the longest retention of SQS. Only the queues with the ARNs `sources` may use it as their DLQ."""
    queue = sqs.Queue(
        scope,
        id_,
        encryption=sqs.QueueEncryption.SQS_MANAGED,
        enforce_ssl=True,
        retention_period=Duration.days(DLQ_RETENTION_DAYS),
        redrive_allow_policy=sqs.RedriveAllowPolicy(redrive_permission=sqs.RedrivePermission.DENY_ALL),
    )
    if sources:
        # By ARN: the construct needs the queue object, which does not exist yet. `Lane` explains why.
        cast(sqs.CfnQueue, queue.node.default_child).redrive_allow_policy = {
            "redrivePermission": "byQueue",
            "sourceQueueArns": list(sources),
        }
    else:
        Validations.of(queue).acknowledge(
            Acknowledgment(
                id="AwsSolutions-SQS3",
                reason="This queue is the last stop of failed messages, and an alarm watches it.",
            )
        )
    return queue
