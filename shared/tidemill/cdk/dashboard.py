"""`Dashboard`: one page that shows whether jobs are accepted, run and succeed, and why they wait."""

from collections.abc import Sequence
from typing import Final

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from tidemill import names
from tidemill.cdk.alarm_metrics import throttles
from tidemill.cdk.config import StageConfig
from tidemill.cdk.job_table import JobTable
from tidemill.cdk.lane import Lane
from tidemill.cdk.publisher import Publisher
from tidemill.cdk.tidemill_metric import tidemill_metric
from tidemill.names import Metric

PERIOD: Final = Duration.minutes(1)
#: A third of a dashboard's 24 columns.
WIDTH: Final = 8
PERCENTILES: Final = ("p50", "p95", "p99")


class Dashboard(Construct):
    def __init__(
        self,
        scope: Construct,
        id_: str,
        *,
        config: StageConfig,
        lanes: Sequence[Lane],
        publisher: Publisher,
        jobs: JobTable,
    ) -> None:
        super().__init__(scope, id_)
        self._config = config
        self.dashboard = cloudwatch.Dashboard(self, "Dashboard")
        self.dashboard.add_widgets(self._canaries())
        for lane in lanes:
            self.dashboard.add_widgets(*self._lane_row(lane))
            self.dashboard.add_widgets(*self._work_row(lane))
            self.dashboard.add_widgets(*self._recovery_row(lane))
            self.dashboard.add_widgets(*self._wait_row(lane))
        self.dashboard.add_widgets(*self._stream_row(publisher, jobs))
        self.dashboard.add_widgets(*self._reconcile_row())

    def _canaries(self) -> cloudwatch.IWidget:
        return _graph(
            "canaries: from submission to success (ms)",
            *(
                tidemill_metric(self._config, lane, Metric.CANARY_LATENCY, statistic="Maximum", label=lane)
                for lane in names.Lane
            ),
        )

    def _lane_row(self, lane: Lane) -> list[cloudwatch.IWidget]:
        name = lane.config.name
        return [
            _graph(
                f"{name}: queue depth",
                lane.queue.metric_approximate_number_of_messages_visible(label="visible", statistic="Maximum"),
                lane.queue.metric_approximate_number_of_messages_not_visible(label="in flight", statistic="Maximum"),
                lane.queue.metric_approximate_number_of_messages_delayed(label="delayed", statistic="Maximum"),
                lane.dead_letters.metric_approximate_number_of_messages_visible(
                    label="dead-letter messages", statistic="Maximum"
                ),
            ),
            _graph(
                f"{name}: age of the oldest message (s)",
                lane.queue.metric_approximate_age_of_oldest_message(label="age", statistic="Maximum"),
            ),
            _graph(
                f"{name}: submitted, dispatched, succeeded",
                *self._counts(name, Metric.SUBMITTED, Metric.DISPATCHED, Metric.SUCCEEDED),
            ),
        ]

    def _work_row(self, lane: Lane) -> list[cloudwatch.IWidget]:
        name = lane.config.name
        return [
            _graph(
                f"{name}: outcomes",
                *self._counts(
                    name,
                    Metric.SUCCEEDED,
                    Metric.RETRIED,
                    Metric.DEAD,
                    Metric.FAILED,
                    Metric.CANCELLED,
                    Metric.SNOOZED,
                    Metric.CONTINUED,
                    Metric.HELD,
                    Metric.PARKED,
                    Metric.UNPARKED,
                ),
            ),
            _graph(f"{name}: attempt duration (ms)", *self._percentiles(name, Metric.ATTEMPT_DURATION)),
            _graph(f"{name}: start latency (ms)", *self._percentiles(name, Metric.START_LATENCY)),
        ]

    def _wait_row(self, lane: Lane) -> list[cloudwatch.IWidget]:
        name = lane.config.name
        return [
            _graph(
                f"{name}: dispatched by wake, advance and reconcile",
                *self._counts(name, Metric.WOKEN, Metric.ADVANCED, Metric.NUDGED, Metric.RESENT),
            ),
            _graph(
                f"{name}: replayed, released, fenced, refused, put back",
                *self._counts(
                    name,
                    Metric.REPLAYED,
                    Metric.RELEASED,
                    Metric.FENCED,
                    Metric.REFUSED,
                    Metric.DUPLICATES,
                    Metric.PUT_BACK,
                ),
            ),
            _graph(
                f"{name}: faults",
                *self._counts(
                    name,
                    Metric.UNAVAILABLE,
                    Metric.DROPPED,
                    Metric.NOT_ACCEPTED,
                    Metric.UNDELIVERABLE,
                    Metric.STRAY_THREADS,
                ),
            ),
        ]

    def _recovery_row(self, lane: Lane) -> list[cloudwatch.IWidget]:
        name = lane.config.name
        return [
            _graph(f"{name}: from submission to success (ms)", *self._percentiles(name, Metric.JOB_LATENCY)),
            _graph(
                f"{name}: errors, attempts per success",
                tidemill_metric(self._config, name, Metric.ATTEMPTS, statistic="Average", label=Metric.ATTEMPTS),
                *self._counts(
                    name,
                    Metric.TRANSIENT_ERRORS,
                    Metric.PERMANENT_ERRORS,
                    Metric.TIMEOUT_ERRORS,
                    Metric.CRASH_ERRORS,
                    Metric.OTHER_ERRORS,
                ),
            ),
            _graph(
                f"{name}: time to recover, retry interval (ms)",
                *(
                    tidemill_metric(self._config, name, metric, statistic="p99", label=f"{metric} p99")
                    for metric in (Metric.TIME_TO_RECOVER, Metric.RETRY_INTERVAL)
                ),
            ),
        ]

    def _stream_row(self, publisher: Publisher, jobs: JobTable) -> list[cloudwatch.IWidget]:
        return [
            _graph(
                "stream: age of the oldest record (ms)",
                publisher.function.function.metric("IteratorAge", label="age", statistic="Maximum"),
            ),
            _graph(
                "unpublished records, unreadable items",
                publisher.failures.metric_approximate_number_of_messages_visible(
                    label="in the failure queue", statistic="Maximum"
                ),
                tidemill_metric(self._config, names.Lane.DEFAULT, Metric.HANDED_OVER, label="handed over"),
                tidemill_metric(self._config, names.Lane.DEFAULT, Metric.PASSED_OVER, label="overdue"),
                tidemill_metric(self._config, names.Lane.DEFAULT, Metric.UNREADABLE, label="unreadable"),
                tidemill_metric(self._config, names.Lane.DEFAULT, Metric.NOT_DECIDED, label="batch items not decided"),
                tidemill_metric(self._config, names.Lane.DEFAULT, Metric.ITEMS_REFUSED, label="batch items refused"),
            ),
            _graph(
                "jobs table: throttles",
                *(throttles(jobs.table, kind) for kind in ("Read", "Write")),
                *(throttles(jobs.table, kind, index=index) for index in jobs.indexes for kind in ("Read", "Write")),
            ),
        ]

    def _reconcile_row(self) -> list[cloudwatch.IWidget]:
        """The pass over the table belongs to no lane, so the engine counts it with the default lane."""

        def latest(*metrics: Metric) -> list[cloudwatch.Metric]:
            return [
                tidemill_metric(self._config, names.Lane.DEFAULT, metric, statistic="Maximum", label=metric)
                for metric in metrics
            ]

        return [
            _graph("reconcile: age, duration (ms)", *latest(Metric.RECONCILE_AGE, Metric.RECONCILE_DURATION)),
            _graph("reconcile: items read by a run", *latest(Metric.RECONCILE_ITEMS)),
            _graph("reconcile: segments finished", *latest(Metric.RECONCILE_SEGMENTS)),
        ]

    def _counts(self, lane: names.Lane, *metrics: Metric) -> list[cloudwatch.Metric]:
        return [tidemill_metric(self._config, lane, metric, label=metric) for metric in metrics]

    def _percentiles(self, lane: names.Lane, metric: Metric) -> list[cloudwatch.Metric]:
        return [
            tidemill_metric(self._config, lane, metric, statistic=percentile, label=percentile)
            for percentile in PERCENTILES
        ]


def _graph(title: str, *metrics: cloudwatch.IMetric) -> cloudwatch.GraphWidget:
    return cloudwatch.GraphWidget(title=title, left=list(metrics), period=PERIOD, width=WIDTH)
