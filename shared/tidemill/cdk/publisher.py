"""`Publisher`: the function that reads the jobs table's stream, and the queue of records that it cannot process."""

from collections.abc import Mapping, Sequence

from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from tidemill import names
from tidemill.cdk.config import StageConfig
from tidemill.cdk.events.stream_mapping import read_jobs
from tidemill.cdk.events.stream_settings import PATTERNS
from tidemill.cdk.functions.job_function import JobFunction
from tidemill.cdk.lanes.dead_letter_queue import dead_letter_queue
from tidemill.cdk.lanes.lane import LaneConstruct, first_message_lanes, lane_urls
from tidemill.cdk.storage.job_table import JobTable


class Publisher(Construct):
    """The caller grants the function its rights on jobs and payloads."""

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        config: StageConfig,
        code: lambda_.AssetCode,
        jobs: JobTable,
        lanes: Sequence[LaneConstruct],
        environment: Mapping[str, str],
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
            verb="publish",
            timeout_seconds=config.publish_timeout_seconds,
            environment={**environment, names.Env.LANES: lane_urls(self, lanes), **first_message_lanes(config)},
        )
        queues = [queue.queue_arn for lane in lanes for queue in (lane.queue, lane.dead_letters)]
        self.function.allow(["sqs:SendMessage"], [*queues, self.failures.queue_arn])
        read_jobs(self, self.function, config=config, jobs=jobs, failures=self.failures, patterns=PATTERNS)
