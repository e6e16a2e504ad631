"""`FilesBucket`: payloads that are too large for the table, and files that jobs write for people to fetch."""

from collections.abc import Sequence
from typing import Final, cast

from aws_cdk import Acknowledgment, Duration, RemovalPolicy, Stack, Validations
from aws_cdk import aws_s3 as s3
from constructs import Construct

from tidemill import names
from tidemill.cdk.config import StageConfig
from tidemill.cdk.iam_actions import GET_FILE, LIST_FILES
from tidemill.cdk.job_function import JobFunction
from tidemill.domain.time_constants import LONGEST_SPAN

#: A payload that a live job may still need is never as old: scheduled a year ahead, then dead for a year at the head of
#: a group that stands for it, or kept for a year.
OLDEST_PAYLOAD_DAYS: Final = 3 * LONGEST_SPAN.days
#: What is left of an upload that was broken off costs as much as a file that can be seen.
UNFINISHED_UPLOADS_DAYS: Final = 7


class FilesBucket(Construct):
    """A payload goes when its job goes; the rule about its age is for those that were left behind.

    A bucket that is not empty cannot be deleted, and no function empties it when its stack goes: where the stage is not
    protected, whoever deletes the stack empties it first.
    """

    def __init__(self, scope: Construct, id_: str, *, config: StageConfig) -> None:
        super().__init__(scope, id_)
        self.bucket = s3.Bucket(
            self,
            "Bucket",
            encryption=s3.BucketEncryption.S3_MANAGED,
            enforce_ssl=True,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            lifecycle_rules=[
                s3.LifecycleRule(prefix=names.PAYLOADS_PREFIX, expiration=Duration.days(OLDEST_PAYLOAD_DAYS)),
                s3.LifecycleRule(prefix=names.EXPORTS_PREFIX, expiration=Duration.days(config.export_retention_days)),
                s3.LifecycleRule(abort_incomplete_multipart_upload_after=Duration.days(UNFINISHED_UPLOADS_DAYS)),
            ],
            removal_policy=RemovalPolicy.RETAIN if config.protected else RemovalPolicy.DESTROY,
        )
        Validations.of(self.bucket).acknowledge(
            Acknowledgment(
                id="AwsSolutions-S1",
                reason="Only functions of this stack read and write it, and each says in its log for which job.",
            )
        )

    def allow(self, function: JobFunction, actions: Sequence[str], *, of: Sequence[str]) -> None:
        """Let `function` do exactly this with the files whose keys begin with one of the prefixes `of`."""
        function.allow(actions, [self.bucket.arn_for_objects(f"{prefix}*") for prefix in of])
        if GET_FILE in actions:
            # Who may not list is told that a file that is not there is forbidden:
            # https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html
            function.allow([LIST_FILES], [self.bucket.bucket_arn])
        resource = cast(s3.CfnBucket, self.bucket.node.default_child)
        Validations.of(function).acknowledge(
            *(
                Acknowledgment(
                    id=f"AwsSolutions-IAM5[Resource::<{Stack.of(self).get_logical_id(resource)}.Arn>/{prefix}*]",
                    reason="What the key of a file goes on with is known when the file is written, and not before.",
                )
                for prefix in of
            )
        )
