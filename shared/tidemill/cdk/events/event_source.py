"""`EventSource`: the function of one source of events, its queue, its dead-letter queue and its alarms.

The constructs `EventBridgeSource`, `S3Source`, `SnsSource` and `TableSource` connect it with a service.
"""

import re
from datetime import timedelta
from typing import Any, Final, cast

from aws_cdk import Duration
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from tidemill.cdk.alarms.alarm import LASTING, LASTING_BOUND, ONCE, ONCE_BOUND, Alarm, Heading, add_alarms
from tidemill.cdk.alarms.alarm_catalogue import IDLE_QUEUE
from tidemill.cdk.alarms.alarm_metrics import all_messages
from tidemill.cdk.alarms.application_alarms import function_alarms
from tidemill.cdk.functions.function_factory import FunctionFactory
from tidemill.cdk.functions.job_function import JobFunction
from tidemill.cdk.iam_actions import DELETE_FILE, PUT_FILE
from tidemill.cdk.lanes.dead_letter_queue import dead_letter_queue
from tidemill.cdk.lanes.lane import CONSUME
from tidemill.cdk.pipeline import Pipeline
from tidemill.cdk.synth_errors import SynthError
from tidemill.names import PAYLOADS_PREFIX, Env

_TIMEOUT_SECONDS: Final = 30
_BATCH_SIZE: Final = 10
#: How often a message is tried, each time after the visibility timeout: half an hour in all. It outlasts a short
#: outage, and a function that raises an error shows within that time.
TRIES: Final = 10
_LATE: Final = timedelta(minutes=15)
#: Condition keys of IAM leave no room for wildcards in it, and a tenant with a slash could be mistaken for a key.
_TENANT: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9:._-]{0,127}")


class EventSource(Construct):
    """`tenant` owns the events of the source, and their jobs. `source` is the name of an `event_source` in the code."""

    def __init__(
        self, functions: FunctionFactory, source: str, *, pipeline: Pipeline, tenant: str, record: str
    ) -> None:
        """`record` is the name of the class that the function of the source takes. Raises `SynthError`."""
        super().__init__(functions.scope, f"Source-{source}")
        pipeline.manifest.require_source(source, record)
        if not _TENANT.fullmatch(tenant):
            raise SynthError(
                f"tenant {tenant!r} of source {source!r}: use 1 to 128 of A-Z, a-z, 0-9, ':', '.', '_' and '-', not a "
                "sign first"
            )
        self.config = functions.config
        self.source = source
        #: Messages and records that no try could publish. An operator redrives them to `queue` with SQS.
        self.dead_letters = dead_letter_queue(self, "DeadLetters")
        self.queue = sqs.Queue(
            self,
            "Queue",
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
            # https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html
            visibility_timeout=Duration.seconds(6 * _TIMEOUT_SECONDS),
            retention_period=Duration.days(4),
            dead_letter_queue=sqs.DeadLetterQueue(max_receive_count=TRIES, queue=self.dead_letters),
            redrive_allow_policy=sqs.RedriveAllowPolicy(redrive_permission=sqs.RedrivePermission.DENY_ALL),
        )
        cast(sqs.CfnQueue, self.dead_letters.node.default_child).add_property_deletion_override("RedriveAllowPolicy")
        self.function = JobFunction(
            self,
            "Function",
            config=self.config,
            code=functions.code,
            verb=f"source-{source}",
            environment={
                Env.SOURCE: source,
                Env.SOURCE_TENANT: tenant,
                Env.SOURCE_QUEUE: self.queue.queue_url,
                Env.SOURCE_DEAD_LETTERS: self.dead_letters.queue_url,
            },
            timeout_seconds=_TIMEOUT_SECONDS,
            handler="tidemill.entrypoints.source.handle",
        )
        pipeline.allow_submitting(self.function, tenant=tenant)
        # The data of an event may be larger than an item.
        pipeline.storage.files.allow(self.function, [PUT_FILE, DELETE_FILE], of=[PAYLOADS_PREFIX])
        pipeline.storage.allow_owing(self.function, tenant=tenant)
        self.function.allow(CONSUME, [self.queue.queue_arn])
        mapping = lambda_.EventSourceMapping(
            self,
            "Mapping",
            target=self.function.live,
            event_source_arn=self.queue.queue_arn,
            batch_size=_BATCH_SIZE,
            report_batch_item_failures=True,
        )
        cast(lambda_.CfnEventSourceMapping, mapping.node.default_child).function_name = self.function.live.function_arn
        alarms = [*self._alarms(), *function_alarms(f"source-{source}", {source: self.function})]
        add_alarms(self, alarms, config=self.config, topics=pipeline.topics)
        self._topics = pipeline.topics

    def let_send(self, service: str, conditions: dict[str, Any], *, queue: sqs.Queue | None = None) -> None:
        """Let an AWS service send messages under these conditions."""
        (queue or self.queue).add_to_resource_policy(
            iam.PolicyStatement(
                principals=[iam.ServicePrincipal(service)],
                actions=["sqs:SendMessage"],
                resources=[(queue or self.queue).queue_arn],
                conditions=conditions,
            )
        )

    def add_alarm(self, alarm: Alarm) -> None:
        add_alarms(self, [alarm], config=self.config, topics=self._topics)

    def _alarms(self) -> list[Alarm]:
        return [
            Alarm(
                id="RefusedRecords",
                heading=Heading.EVENT_SOURCE,
                meaning=f"Records of the source {self.source} could not be published, and are set aside.",
                metric=all_messages(self.dead_letters, config=self.config),
                m_of_n=ONCE,
                within=IDLE_QUEUE + ONCE_BOUND,
            ),
            Alarm(
                id="LateSource",
                heading=Heading.EVENT_SOURCE,
                meaning=f"Messages of the source {self.source} wait for more than a quarter of an hour.",
                metric=self.queue.metric_approximate_age_of_oldest_message(
                    period=Duration.minutes(1), statistic="Maximum"
                ),
                above=_LATE / timedelta(seconds=1),
                m_of_n=LASTING,
                within=_LATE + LASTING_BOUND,
            ),
        ]
