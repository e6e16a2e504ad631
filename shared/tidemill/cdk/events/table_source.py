"""`TableSource`: the changes of a table of the app become events of Tidemill."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_dynamodb as dynamodb

from tidemill.cdk.alarms.alarm import LASTING, LASTING_BOUND, Alarm, Heading
from tidemill.cdk.events.event_source import EventSource
from tidemill.cdk.events.stream_mapping import READ_STREAM, stream_mapping
from tidemill.cdk.functions.function_factory import FunctionFactory
from tidemill.cdk.pipeline import Pipeline
from tidemill.cdk.synth_errors import SynthError

_LATE = timedelta(minutes=15)


class TableSource(EventSource):
    """A table whose stream has less than two readers: https://docs.aws.amazon.com/lambda/latest/dg/with-ddb.html.

    `patterns` are filters of the event source mapping; a change that matches none costs no invocation.
    """

    def __init__(
        self,
        functions: FunctionFactory,
        source: str,
        *,
        pipeline: Pipeline,
        tenant: str,
        table: dynamodb.ITable,
        patterns: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        super().__init__(functions, source, pipeline=pipeline, tenant=tenant, record="TableRecord")
        if table.table_stream_arn is None:
            raise SynthError(
                f"source {source!r}: its table has no stream; give it stream=StreamViewType.NEW_AND_OLD_IMAGES"
            )
        self.function.allow(READ_STREAM, [table.table_stream_arn])
        # What the function passes on, and what Lambda sets aside.
        self.function.allow(["sqs:SendMessage"], [self.queue.queue_arn, self.dead_letters.queue_arn])
        stream_mapping(
            self,
            "Changes",
            self.function,
            stream_arn=table.table_stream_arn,
            failures=self.dead_letters,
            patterns=patterns,
        )
        self.add_alarm(
            Alarm(
                id="LateChanges",
                heading=Heading.EVENT_SOURCE,
                meaning=f"The source {source} is more than {_LATE // timedelta(minutes=1)} minutes behind its table.",
                metric=self.function.function.metric(
                    "IteratorAge",
                    period=Duration.minutes(1),
                    statistic="Maximum",
                    unit=cloudwatch.Unit.MILLISECONDS,
                ),
                above=_LATE / timedelta(milliseconds=1),
                m_of_n=LASTING,
                within=_LATE + LASTING_BOUND,
            )
        )
