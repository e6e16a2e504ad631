"""`Dashboard`: one page, in the order of an incident's questions."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from tidemill.application.operations.objectives import FAST_BURN
from tidemill.cdk.alarms.alarm import AddedAlarms
from tidemill.cdk.alarms.alarm_metrics import failed_submissions, late_starts, throttles
from tidemill.cdk.alarms.tidemill_metric import tidemill_metric
from tidemill.cdk.config import StageConfig
from tidemill.cdk.functions.job_function import JobFunction
from tidemill.cdk.lanes.lane import LaneConstruct
from tidemill.cdk.publisher import Publisher
from tidemill.cdk.storage.job_table import JobTable
from tidemill.cdk.template_limits import WIDGET_ALARMS
from tidemill.metrics import Metric
from tidemill.names import Lane

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
        lanes: Sequence[LaneConstruct],
        publisher: Publisher,
        jobs: JobTable,
        submit: JobFunction,
        alarms: AddedAlarms,
    ) -> None:
        super().__init__(scope, id_)
        self._config = config
        self.dashboard = cloudwatch.Dashboard(self, "Dashboard")
        self._ask("Are users affected?", self._alarms(alarms), self._objectives(submit))
        self._ask("Where is work stuck?", *(self._lane_row(lane) for lane in lanes), self._stream_row(publisher, jobs))
        self._ask("What fails?", *(row for lane in lanes for row in (self._work_row(lane), self._recovery_row(lane))))
        self._ask("What changed?", self._versions(lanes), [self._drift(), self._breakers(), self._refusals()])
        self._ask("What does the engine do?", *(self._wait_row(lane) for lane in lanes), self._reconcile_row())

    def _ask(self, question: str, *rows: Sequence[cloudwatch.IWidget]) -> None:
        runbook = f"[runbook]({self._config.runbook_url})"
        heading = cloudwatch.TextWidget(markdown=f"# {question}\n{runbook}", width=3 * WIDTH, height=2)
        self.dashboard.add_widgets(heading)
        for row in rows:
            self.dashboard.add_widgets(*row)

    def _alarms(self, added: AddedAlarms) -> list[cloudwatch.IWidget]:
        """All pages, and the tickets that fire now. Each measured job type has a ticket."""
        tickets, most = self._named("Ticket", added.tickets), WIDGET_ALARMS.most
        return [
            cloudwatch.AlarmStatusWidget(title="pages", alarms=self._named("Page", added.pages), width=3 * WIDTH),
            *(
                cloudwatch.AlarmStatusWidget(
                    title="tickets that fire",
                    alarms=tickets[first : first + most],
                    states=[cloudwatch.AlarmState.ALARM],
                    width=3 * WIDTH,
                )
                for first in range(0, len(tickets), most)
            ),
        ]

    def _named(self, of: str, alarms: Sequence[str]) -> list[cloudwatch.IAlarm]:
        return [cloudwatch.Alarm.from_alarm_name(self, f"{of}{number}", name) for number, name in enumerate(alarms, 1)]

    def _objectives(self, submit: JobFunction) -> list[cloudwatch.IWidget]:
        """The percentages that the burn rates judge, over the short window of a page."""
        short = FAST_BURN.short
        window = Duration.seconds(short // timedelta(seconds=1))
        failed = failed_submissions(self._config, submit, short).with_(label="failed")
        late = late_starts(self._config, short).with_(label="late")
        return [
            _graph("submissions that failed (%)", failed, period=window),
            _graph("late starts of the lane critical (%)", late, period=window),
            _graph(
                "canaries: from submission to success (ms)",
                *(
                    tidemill_metric(self._config, lane, Metric.CANARY_LATENCY, statistic="Maximum", label=lane)
                    for lane in Lane
                ),
            ),
        ]

    def _versions(self, lanes: Sequence[LaneConstruct]) -> list[cloudwatch.IWidget]:
        """Each line `claimed` names the version of the code, so a deployment shows as a new version.

        A run has two lines with the version, and one of them is counted.
        """
        return [
            cloudwatch.LogQueryWidget(
                title=f"{lane.config.name}: begins of runs by version",
                log_group_names=[lane.worker.log_group.log_group_name],
                view=cloudwatch.LogQueryVisualizationType.STACKEDAREA,
                query_lines=['filter message = "claimed"', "stats count() by bin(5m), version"],
                width=WIDTH,
            )
            for lane in lanes
        ]

    def _drift(self) -> cloudwatch.IWidget:
        drifted = tidemill_metric(self._config, Lane.DEFAULT, Metric.DRIFTED, statistic="Maximum", label="resources")
        return _graph("resources that differ from the template", drifted)

    def _breakers(self) -> cloudwatch.IWidget:
        opened = tidemill_metric(self._config, Lane.DEFAULT, Metric.BREAKER_OPENED, label="opened")
        age = tidemill_metric(
            self._config, Lane.DEFAULT, Metric.BREAKER_OPEN, statistic="Maximum", label="longest open (s)"
        )
        return _graph("circuit breakers: openings, time open", opened, age)

    def _refusals(self) -> cloudwatch.IWidget:
        metrics = (
            Metric.SUBMISSIONS_SHED,
            Metric.SUBMISSIONS_DEFERRED,
            Metric.SUBMISSIONS_PAUSED,
            Metric.SUBMISSIONS_OVER_QUOTA,
        )
        level = tidemill_metric(
            self._config, Lane.DEFAULT, Metric.STRAIN_LEVEL, statistic="Maximum", label="level of strain"
        )
        return _graph("submissions refused or deferred by a decision", *self._counts(Lane.DEFAULT, *metrics), level)

    def _lane_row(self, lane: LaneConstruct) -> list[cloudwatch.IWidget]:
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
                f"{name}: age of the oldest message, rests under strain (s)",
                lane.queue.metric_approximate_age_of_oldest_message(label="age", statistic="Maximum"),
                *self._counts(name, Metric.RESTED),
            ),
            _graph(
                f"{name}: in (submitted, added) and out (succeeded, dead, cancelled, expired)",
                *self._counts(
                    name,
                    Metric.SUBMITTED,
                    Metric.ADDED,
                    Metric.SUCCEEDED,
                    Metric.DEAD,
                    Metric.CANCELLED,
                    Metric.EXPIRED,
                ),
            ),
        ]

    def _work_row(self, lane: LaneConstruct) -> list[cloudwatch.IWidget]:
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
                    Metric.EXPIRED,
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

    def _wait_row(self, lane: LaneConstruct) -> list[cloudwatch.IWidget]:
        name = lane.config.name
        return [
            _graph(
                f"{name}: messages sent; jobs of wake, advance, reconcile",
                lane.queue.metric_number_of_messages_sent(label="sent", statistic="Sum"),
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
                    Metric.BROKEN_JOB_FILES,
                    Metric.CONCURRENCY_LOWERED,
                ),
            ),
        ]

    def _recovery_row(self, lane: LaneConstruct) -> list[cloudwatch.IWidget]:
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
                "not published, not read, not accepted",
                publisher.failures.metric_approximate_number_of_messages_visible(
                    label="in the failure queue", statistic="Maximum"
                ),
                tidemill_metric(self._config, Lane.DEFAULT, Metric.HANDED_OVER, label="handed over"),
                tidemill_metric(self._config, Lane.DEFAULT, Metric.PASSED_OVER, label="overdue"),
                tidemill_metric(self._config, Lane.DEFAULT, Metric.UNREADABLE, label="unreadable"),
                tidemill_metric(self._config, Lane.DEFAULT, Metric.RECORDS_CHANGED, label="changed records"),
                tidemill_metric(self._config, Lane.DEFAULT, Metric.SUBMISSIONS_FAILED, label="submissions that failed"),
                tidemill_metric(self._config, Lane.DEFAULT, Metric.ITEMS_REFUSED, label="batch items refused"),
            ),
            _graph(
                "jobs table: throttles",
                tidemill_metric(self._config, Lane.DEFAULT, Metric.WRITES_THROTTLED, label="first tries of functions"),
                *(throttles(jobs.table, kind) for kind in ("Read", "Write")),
                *(throttles(jobs.table, kind, index=index) for index in jobs.indexes for kind in ("Read", "Write")),
            ),
        ]

    def _reconcile_row(self) -> list[cloudwatch.IWidget]:
        """The pass over the table belongs to no lane, so the engine counts it with the default lane."""

        def latest(*metrics: Metric) -> list[cloudwatch.Metric]:
            return [
                tidemill_metric(self._config, Lane.DEFAULT, metric, statistic="Maximum", label=metric)
                for metric in metrics
            ]

        return [
            _graph("reconcile: age, duration (ms)", *latest(Metric.RECONCILE_AGE, Metric.RECONCILE_DURATION)),
            _graph("reconcile: items read by a run", *latest(Metric.RECONCILE_ITEMS)),
            _graph("reconcile: segments finished", *latest(Metric.RECONCILE_SEGMENTS)),
        ]

    def _counts(self, lane: Lane, *metrics: Metric) -> list[cloudwatch.Metric]:
        return [tidemill_metric(self._config, lane, metric, label=metric) for metric in metrics]

    def _percentiles(self, lane: Lane, metric: Metric) -> list[cloudwatch.Metric]:
        return [
            tidemill_metric(self._config, lane, metric, statistic=percentile, label=percentile)
            for percentile in PERCENTILES
        ]


def _graph(title: str, *metrics: cloudwatch.IMetric, period: Duration = PERIOD) -> cloudwatch.GraphWidget:
    return cloudwatch.GraphWidget(title=title, left=list(metrics), period=period, width=WIDTH)
