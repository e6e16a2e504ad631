"""A lane: its queue, its dead-letter queue and its workers. `LaneConfig` derives the figures that depend on others."""

from collections.abc import Mapping, Sequence
from typing import Final, cast

from aws_cdk import Aws, Duration, Fn, Stack
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from tidemill import names
from tidemill.cdk.config import StageConfig
from tidemill.cdk.functions.job_function import JobFunction
from tidemill.cdk.lanes.dead_letter_queue import dead_letter_queue
from tidemill.cdk.lanes.lane_config import LaneConfig

#: The actions of an event source mapping on its queue, which the function's role must allow. A worker needs the last
#: one to put a message back. Reconcile needs the same actions to sort DLQ messages.
#: https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
CONSUME: Final = (
    "sqs:ReceiveMessage",
    "sqs:DeleteMessage",
    "sqs:GetQueueAttributes",
    "sqs:ChangeMessageVisibility",
)


class LaneConstruct(Construct):
    """One lane. The caller grants its worker all rights beyond its queue.

    The message of a crashed or throttled worker returns after the visibility timeout, and each return uses up a
    receive. So the visibility timeout is six times the function's timeout, and `max_receive_count` is so high that no
    job dies of its receives.
    """

    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        config: StageConfig,
        lane: LaneConfig,
        code: lambda_.AssetCode,
        environment: Mapping[str, str],
    ) -> None:
        super().__init__(scope, id_)
        self.config = lane
        # Each of the two queues refers to the other, which is a circular reference unless the name of one is known in
        # advance. The stack's GUID makes the name unique among installations, and new when a stack is created again.
        guid = Fn.select(2, Fn.split("/", Aws.STACK_ID))
        queue_name = f"{names.APP}-{lane.name}-{guid}"
        self.dead_letters = dead_letter_queue(
            self, "Letters", sources=[Stack.of(self).format_arn(service="sqs", resource=queue_name)]
        )
        self.queue = sqs.Queue(
            self,
            "Queue",
            queue_name=queue_name,
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            visibility_timeout=Duration.seconds(lane.visibility_timeout_seconds),
            retention_period=Duration.days(lane.queue_retention_days),
            dead_letter_queue=sqs.DeadLetterQueue(max_receive_count=lane.max_receive_count, queue=self.dead_letters),
            redrive_allow_policy=sqs.RedriveAllowPolicy(redrive_permission=sqs.RedrivePermission.DENY_ALL),
        )
        self.worker = JobFunction(
            self,
            "Worker",
            config=config,
            code=code,
            verb="work",
            timeout_seconds=lane.function_timeout_seconds,
            memory_mb=lane.memory_mb,
            reserved_concurrency=lane.reserved_concurrency,
            may_recurse=lane.first_message_at_once,
            environment={
                names.Env.LANES: Stack.of(self).to_json_string(self.urls),
                names.Env.JOB_TIMEOUT_SECONDS: str(lane.job_timeout_seconds),
                **({names.Env.METRICS_BY_TYPE: str(config.metrics_by_type)} if config.metrics_by_type else {}),
                **(first_message_lanes(config) if lane.first_message_at_once else {}),
                **environment,
            },
        )
        self.worker.allow(CONSUME, [self.queue.queue_arn])
        if lane.first_message_at_once:
            self.worker.allow(["sqs:SendMessage"], [self.queue.queue_arn])
        self.mapping = lambda_.EventSourceMapping(
            self,
            "Mapping",
            target=self.worker.live,
            event_source_arn=self.queue.queue_arn,
            batch_size=lane.batch_size,
            max_batching_window=Duration.seconds(lane.batching_window_seconds),
            max_concurrency=lane.max_concurrency,
            report_batch_item_failures=True,
        )
        # The L2 construct takes the ARN of an alias apart, and a comparison with the template could not read that.
        cast(
            lambda_.CfnEventSourceMapping, self.mapping.node.default_child
        ).function_name = self.worker.live.function_arn

    @property
    def function_key(self) -> str:
        """The worker's key in `names.Output.FUNCTIONS`."""
        return self.worker.verb if self.config.name == names.Lane.DEFAULT else f"{self.worker.verb}-{self.config.name}"

    @property
    def urls(self) -> dict[str, dict[str, str]]:
        """This lane's entry of `names.Env.LANES`. Its worker gets no other entry."""
        return {self.config.name: {"queue": self.queue.queue_url, "dead_letters": self.dead_letters.queue_url}}


def lane_urls(scope: Construct, lanes: Sequence[LaneConstruct]) -> str:
    """The value of `names.Env.LANES` and of `names.Output.LANES`."""
    return Stack.of(scope).to_json_string({name: urls for lane in lanes for name, urls in lane.urls.items()})


def first_message_lanes(config: StageConfig) -> Mapping[str, str]:
    """`names.Env.FIRST_MESSAGE_LANES` for submit, publish and the workers of such lanes; empty where no lane is one."""
    return {names.Env.FIRST_MESSAGE_LANES: ",".join(config.first_message_lanes)} if config.first_message_lanes else {}
