"""`Archiver`: the function that writes ended jobs to a bucket, and the queue of records that it cannot write."""

from aws_cdk import Acknowledgment, Aws, Validations
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from tidemill import names
from tidemill.cdk.config import StageConfig
from tidemill.cdk.events.stream_mapping import read_jobs
from tidemill.cdk.events.stream_settings import ARCHIVE_PATTERN
from tidemill.cdk.functions.job_function import JobFunction
from tidemill.cdk.iam_actions import PUT_FILE
from tidemill.cdk.lanes.dead_letter_queue import dead_letter_queue
from tidemill.cdk.storage.job_table import JobTable


class Archiver(Construct):
    """The second and last reader of the stream: a third one would be throttled.

    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Streams.html
    """

    def __init__(
        self, scope: Construct, id_: str, *, config: StageConfig, code: lambda_.AssetCode, jobs: JobTable
    ) -> None:
        super().__init__(scope, id_)
        self.config = config
        #: A message names a range of the stream, not a job: Lambda sends metadata only.
        self.failures = dead_letter_queue(self, "Failures")
        self.function = JobFunction(
            self,
            "Function",
            config=config,
            code=code,
            verb="archive",
            timeout_seconds=config.publish_timeout_seconds,
            environment={names.Env.ARCHIVE_BUCKET: config.archive},
        )
        files = f"arn:{Aws.PARTITION}:s3:::{config.archive}/{names.ARCHIVE_PREFIX}*"
        self.function.allow([PUT_FILE], [files])
        Validations.of(self.function).acknowledge(
            Acknowledgment(
                id=f"AwsSolutions-IAM5[Resource::arn:<AWS::Partition>:s3:::{config.archive}/{names.ARCHIVE_PREFIX}*]",
                reason="The rest of the object key is known only when the job ends.",
            )
        )
        self.function.allow(["sqs:SendMessage"], [self.failures.queue_arn])
        read_jobs(self, self.function, config=config, jobs=jobs, failures=self.failures, patterns=[ARCHIVE_PATTERN])
