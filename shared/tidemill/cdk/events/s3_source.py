"""`S3Source`: the notifications of a bucket become events of Tidemill."""

from collections.abc import Sequence
from typing import cast

import jsii
from aws_cdk import Aws
from aws_cdk import aws_s3 as s3
from constructs import IValidation

from tidemill.cdk.events.event_source import EventSource
from tidemill.cdk.functions.function_factory import FunctionFactory
from tidemill.cdk.pipeline import Pipeline
from tidemill.cdk.synth_errors import SynthError


@jsii.implements(IValidation)
class _KeepsItsNotifications:
    """The custom resource of CDK writes all notifications of a bucket, and so would remove that of the source.

    https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketNotificationConfiguration.html
    """

    def __init__(self, source: str, bucket: s3.Bucket) -> None:
        self._source = source
        self._bucket = bucket

    def validate(self) -> list[str]:
        written = self._bucket.node.try_find_child("Notifications")
        if written is None or written.node.try_find_child("Resource") is None:
            return []
        fault = (
            f"source {self._source!r}: event_bridge_enabled and add_event_notification of its bucket would remove the "
            "notification of the source; set notification_configuration of its CfnBucket instead"
        )
        return [fault]


class S3Source(EventSource):
    """For a bucket that this app creates. For any other, let it send to EventBridge, and use `EventBridgeSource`.

    `events` are those of S3, such as `s3:ObjectCreated:*`. The notification is part of the bucket itself: the custom
    resource of CDK would add a function that may change the notifications of every bucket.
    """

    def __init__(
        self,
        functions: FunctionFactory,
        source: str,
        *,
        pipeline: Pipeline,
        tenant: str,
        bucket: s3.Bucket,
        events: Sequence[str] = ("s3:ObjectCreated:*",),
        prefix: str = "",
        suffix: str = "",
    ) -> None:
        super().__init__(functions, source, pipeline=pipeline, tenant=tenant, record="S3Record")
        found = bucket.node.default_child
        if not isinstance(found, s3.CfnBucket):
            raise SynthError(f"source {source!r}: its bucket is not created by this app; use EventBridgeSource")
        # The name of the bucket in this condition would be a circular reference, as the bucket needs the policy first.
        self.let_send(
            "s3.amazonaws.com",
            {
                "StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID},
                "ArnLike": {"aws:SourceArn": f"arn:{Aws.PARTITION}:s3:::*"},
            },
        )
        rules = [
            s3.CfnBucket.FilterRuleProperty(name=name, value=value)
            for name, value in (("prefix", prefix), ("suffix", suffix))
            if value
        ]
        chosen = s3.CfnBucket.NotificationFilterProperty(s3_key=s3.CfnBucket.S3KeyFilterProperty(rules=rules))
        kept = s3.CfnBucket.NotificationConfigurationProperty
        earlier = (
            cast(s3.CfnBucket.NotificationConfigurationProperty | None, found.notification_configuration) or kept()
        )
        found.notification_configuration = kept(
            event_bridge_configuration=earlier.event_bridge_configuration,
            lambda_configurations=earlier.lambda_configurations,
            topic_configurations=earlier.topic_configurations,
            queue_configurations=[
                *cast(list[s3.CfnBucket.QueueConfigurationProperty], earlier.queue_configurations or []),
                *(
                    s3.CfnBucket.QueueConfigurationProperty(
                        event=event, queue=self.queue.queue_arn, filter=chosen if rules else None
                    )
                    for event in events
                ),
            ],
        )
        self.node.add_validation(_KeepsItsNotifications(source, bucket))
        policy = self.queue.node.find_child("Policy").node.default_child
        # S3 tests the queue when it is configured:
        # https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-how-to-event-types-and-destinations.html
        found.add_dependency(policy)  # type: ignore[arg-type]  # the resource of a queue policy
