"""`EventBridgeSource`: the events of a bus that match a pattern become events of Tidemill."""

from aws_cdk import Duration
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets

from tidemill.cdk.events.event_source import EventSource
from tidemill.cdk.functions.function_factory import FunctionFactory
from tidemill.cdk.pipeline import Pipeline

#: The longest that EventBridge offers. Both are its defaults, and written so that the template says them:
#: https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-rule-retry-policy.html
RETRIED_FOR = Duration.hours(24)
RETRIES = 185


class EventBridgeSource(EventSource):
    """Without `bus`, the default bus of the account, which carries the events of AWS services."""

    def __init__(
        self,
        functions: FunctionFactory,
        source: str,
        *,
        pipeline: Pipeline,
        tenant: str,
        pattern: events.EventPattern,
        bus: events.IEventBus | None = None,
    ) -> None:
        super().__init__(functions, source, pipeline=pipeline, tenant=tenant, record="EventBridgeRecord")
        self.rule = events.Rule(
            self,
            "Rule",
            event_bus=bus,
            event_pattern=pattern,
            targets=[
                targets.SqsQueue(
                    self.queue,
                    dead_letter_queue=self.dead_letters,
                    max_event_age=RETRIED_FOR,
                    retry_attempts=RETRIES,
                )
            ],
        )
