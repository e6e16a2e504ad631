"""The queues where a message waits for a person: dead letters, changes not published, calls of the clock missed."""

from collections.abc import Sequence
from typing import cast

from aws_cdk import Acknowledgment, Duration, Validations
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from tidemill.cdk.config import LETTER_RETENTION_DAYS


def dead_letter_queue(scope: Construct, id_: str, *, sources: Sequence[str] = ()) -> sqs.Queue:
    """A queue kept as long as SQS can, which the queues with the ARNs `sources` may call theirs, and no other."""
    queue = sqs.Queue(
        scope,
        id_,
        encryption=sqs.QueueEncryption.SQS_MANAGED,
        enforce_ssl=True,
        retention_period=Duration.days(LETTER_RETENTION_DAYS),
        redrive_allow_policy=sqs.RedriveAllowPolicy(redrive_permission=sqs.RedrivePermission.DENY_ALL),
    )
    if sources:
        # By ARN, where the construct wants the queue itself: see `Lane` for why that does not exist yet.
        cast(sqs.CfnQueue, queue.node.default_child).redrive_allow_policy = {
            "redrivePermission": "byQueue",
            "sourceQueueArns": list(sources),
        }
    else:
        Validations.of(queue).acknowledge(
            Acknowledgment(id="AwsSolutions-SQS3", reason="It is where what failed for good ends, and it rings.")
        )
    return queue
