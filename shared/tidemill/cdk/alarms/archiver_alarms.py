"""The alarms of the archive, for a stage that has one."""

from collections.abc import Iterator
from datetime import timedelta

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch

from tidemill.cdk.alarms import alarm_metrics as metrics
from tidemill.cdk.alarms.alarm import LASTING, LASTING_BOUND, ONCE, ONCE_BOUND, Alarm, Entry, Heading
from tidemill.cdk.alarms.alarm_catalogue import IDLE_QUEUE
from tidemill.cdk.alarms.application_alarms import function_alarms
from tidemill.cdk.storage.archiver import Archiver


def archiver_alarms(archiver: Archiver) -> Iterator[Entry]:
    yield Alarm(
        id="LateArchive",
        heading=Heading.LATE_STREAM,
        meaning="The archive is more than an hour behind. After 24 hours, jobs that ended are missing in it.",
        metric=archiver.function.function.metric(
            "IteratorAge", period=Duration.minutes(1), statistic="Maximum", unit=cloudwatch.Unit.MILLISECONDS
        ),
        above=60 * 60_000,
        m_of_n=LASTING,
        within=timedelta(hours=1) + LASTING_BOUND,
    )
    yield Alarm(
        id="UnarchivedRecords",
        heading=Heading.UNPUBLISHED_RECORDS,
        meaning="Lambda set aside ended jobs that could not be archived.",
        metric=metrics.all_messages(archiver.failures, config=archiver.config),
        m_of_n=ONCE,
        within=IDLE_QUEUE + ONCE_BOUND,
    )
    yield from function_alarms("archiver", {"archive": archiver.function})
