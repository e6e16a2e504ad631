"""The event source mapping by which a function reads the jobs table's stream."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from aws_cdk import Acknowledgment, Stack, Validations
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from tidemill.cdk.config import OLDEST_RECORD_SECONDS, StageConfig
from tidemill.cdk.job_function import JobFunction
from tidemill.cdk.job_table import JobTable
from tidemill.cdk.stream_settings import BATCH_SIZE, RETRIES

#: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/iam-policy-example-lamda-process-dynamodb-streams.html
READ_STREAM: Final = (
    "dynamodb:DescribeStream",
    "dynamodb:GetRecords",
    "dynamodb:GetShardIterator",
    "dynamodb:ListStreams",
)


def allow_streams(function: JobFunction, jobs: JobTable) -> None:
    """A stream that is enabled again has another name, and a repair lets its readers read it, too."""
    function.allow(READ_STREAM, [f"{jobs.table.table_arn}/stream/*"])
    table = Stack.of(function).resolve(jobs.table.table_arn)
    name = table if isinstance(table, str) else f"<{'.'.join(table['Fn::GetAtt'])}>"
    Validations.of(function).acknowledge(
        Acknowledgment(
            id=f"AwsSolutions-IAM5[Resource::{name}/stream/*]",
            reason="DynamoDB names a stream when it is enabled, and the function reads each one of its table.",
        )
    )


def stream_mapping(
    scope: Construct,
    function: JobFunction,
    *,
    config: StageConfig,
    jobs: JobTable,
    failures: sqs.IQueue,
    patterns: Sequence[Mapping[str, Any]],
) -> lambda_.CfnEventSourceMapping:
    """The L1 resource: the failure destination of the L2 construct grants more than `SendMessage`."""
    return lambda_.CfnEventSourceMapping(
        scope,
        "Mapping",
        function_name=function.live.function_arn,
        event_source_arn=jobs.stream_arn,
        starting_position="TRIM_HORIZON",
        batch_size=BATCH_SIZE,
        # With several batches of a shard at once, an urgent job waits for fewer records of other jobs. Lambda keeps
        # the order of the records of one item, and no reader needs another order:
        # https://docs.aws.amazon.com/lambda/latest/dg/with-ddb.html
        parallelization_factor=config.stream_parallelization,
        bisect_batch_on_function_error=True,
        maximum_retry_attempts=RETRIES,
        maximum_record_age_in_seconds=OLDEST_RECORD_SECONDS,
        function_response_types=["ReportBatchItemFailures"],
        destination_config=lambda_.CfnEventSourceMapping.DestinationConfigProperty(
            on_failure=lambda_.CfnEventSourceMapping.OnFailureProperty(destination=failures.queue_arn)
        ),
        filter_criteria=lambda_.CfnEventSourceMapping.FilterCriteriaProperty(
            filters=[
                lambda_.CfnEventSourceMapping.FilterProperty(pattern=Stack.of(scope).to_json_string(pattern))
                for pattern in patterns
            ]
        ),
    )
