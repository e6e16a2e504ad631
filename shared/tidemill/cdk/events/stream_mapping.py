"""The event source mapping by which a function reads a stream of DynamoDB."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from aws_cdk import Acknowledgment, Stack, Validations
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from tidemill.cdk.config import OLDEST_RECORD_SECONDS, StageConfig
from tidemill.cdk.events.stream_settings import BATCH_SIZE, RETRIES
from tidemill.cdk.functions.job_function import JobFunction
from tidemill.cdk.storage.job_table import JobTable

#: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/iam-policy-example-lamda-process-dynamodb-streams.html
READ_STREAM: Final = (
    "dynamodb:DescribeStream",
    "dynamodb:GetRecords",
    "dynamodb:GetShardIterator",
    "dynamodb:ListStreams",
)


def stream_mapping(
    scope: Construct,
    id_: str,
    function: JobFunction,
    *,
    stream_arn: str,
    failures: sqs.IQueue,
    patterns: Sequence[Mapping[str, Any]],
    parallelization: int | None = None,
) -> lambda_.CfnEventSourceMapping:
    """The L1 resource: the failure destination of the L2 construct grants more than `SendMessage`.

    Without `patterns`, every change calls the function. `parallelization` is the number of batches of a shard at once.
    """
    return lambda_.CfnEventSourceMapping(
        scope,
        id_,
        function_name=function.live.function_arn,
        event_source_arn=stream_arn,
        # A deployment that begins a reader loses none of the changes that it causes.
        starting_position="TRIM_HORIZON",
        batch_size=BATCH_SIZE,
        # With several batches of a shard at once, an urgent job waits for fewer records of other jobs. Lambda keeps
        # the order of the records of one item, and no reader of jobs needs another order:
        # https://docs.aws.amazon.com/lambda/latest/dg/with-ddb.html
        parallelization_factor=parallelization,
        bisect_batch_on_function_error=True,
        # By default, both have no bound, and one record could hold up its shard for a day.
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
        )
        if patterns
        else None,
    )


def read_jobs(
    scope: Construct,
    function: JobFunction,
    *,
    config: StageConfig,
    jobs: JobTable,
    failures: sqs.IQueue,
    patterns: Sequence[Mapping[str, Any]],
) -> None:
    """Let the function read the stream of the jobs table.

    A stream that is enabled again has another name, and a repair lets its readers read it, too.
    """
    function.allow(READ_STREAM, [f"{jobs.table.table_arn}/stream/*"])
    table = Stack.of(function).resolve(jobs.table.table_arn)
    name = table if isinstance(table, str) else f"<{'.'.join(table['Fn::GetAtt'])}>"
    Validations.of(function).acknowledge(
        Acknowledgment(
            id=f"AwsSolutions-IAM5[Resource::{name}/stream/*]",
            reason="DynamoDB names a stream when it is enabled, and the function reads each one of its table.",
        )
    )
    stream_mapping(
        scope,
        "Mapping",
        function,
        stream_arn=jobs.stream_arn,
        failures=failures,
        patterns=patterns,
        parallelization=config.stream_parallelization,
    )
