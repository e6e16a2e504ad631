"""`FilesBucket`: payloads that are too large for the table, and files that jobs write for users to fetch."""

from collections.abc import Sequence
from typing import Final, cast

from aws_cdk import Acknowledgment, Duration, RemovalPolicy, Stack, Validations
from aws_cdk import aws_s3 as s3
from constructs import Construct

from tidemill import names
from tidemill.cdk.config import StageConfig
from tidemill.cdk.job_function import JobFunction
from tidemill.domain.time_constants import LONGEST_SPAN

#: A payload that a job still needs is always younger. A job may be scheduled a year ahead, be dead for a year at the
#: head of a blocked group, and be kept for a year.
OLDEST_PAYLOAD_DAYS: Final = 3 * LONGEST_SPAN.days
#: S3 charges for the parts of an unfinished upload as for a file.
UNFINISHED_UPLOADS_DAYS: Final = 7


class FilesBucket(Construct):
    """The publisher deletes a payload when its job is deleted. A writer deletes one that no job came to need.

    Wake tries again. The lifecycle rule removes the rest, such as the files of writers that died.

    CloudFormation cannot delete a bucket that is not empty, and no function empties it. In a stage that is not
    protected, the operator empties the bucket before deleting the stack.
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
                reason="Only functions of this stack access the bucket, and each logs the job that it works for.",
            )
        )

    def allow(self, function: JobFunction, actions: Sequence[str], *, of: Sequence[str]) -> None:
        """Allow `function` these actions on the files whose object keys begin with one of the prefixes `of`.

        No function may list the bucket, so S3 answers 403 for a missing file. `DynamoPayloads` expects that:
        https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html
        """
        function.allow(actions, [self.bucket.arn_for_objects(f"{prefix}*") for prefix in of])
        resource = cast(s3.CfnBucket, self.bucket.node.default_child)
        Validations.of(function).acknowledge(
            *(
                Acknowledgment(
                    id=f"AwsSolutions-IAM5[Resource::<{Stack.of(self).get_logical_id(resource)}.Arn>/{prefix}*]",
                    reason="The rest of the object key is known only when the file is written.",
                )
                for prefix in of
            )
        )
