"""The metrics of alarms that read several: sums over lanes or functions, burn rates, and paths that must run."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Final

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs

from tidemill.application.operations.objectives import LATE_START, LEAST_BAD_EVENTS
from tidemill.cdk.alarms.tidemill_metric import tidemill_metric
from tidemill.cdk.config import StageConfig
from tidemill.cdk.functions.job_function import JobFunction
from tidemill.cdk.functions.scheduled_functions import ScheduledFunctions
from tidemill.cdk.http_api import Api
from tidemill.cdk.job_api import JobApi
from tidemill.cdk.lanes.lane import LaneConstruct
from tidemill.cdk.publisher import Publisher
from tidemill.metrics import METRIC_NAMESPACE, Metric
from tidemill.names import Lane

#: The latency of a canary without a value.
SILENT_CANARY_MS: Final = 3_600_000
#: For a page, so many jobs of a lane must fail in five minutes.
LEAST_FAILED_JOBS: Final = 5
#: The average of fewer successes in a quarter of an hour says nothing.
LEAST_SUCCESSES: Final = 10

AnyMetric = cloudwatch.Metric | cloudwatch.MathExpression
MINUTE = Duration.minutes(1)


def math(expression: str, period: Duration = MINUTE, **metrics: cloudwatch.Metric) -> cloudwatch.MathExpression:
    """In an alarm, all metrics of an expression have its period, and at most ten are allowed. The CDK warns of others.

    https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarm-limits.html
    """
    in_period = {id_: metric.with_(period=period) for id_, metric in metrics.items()}
    return cloudwatch.MathExpression(expression=expression, period=period, using_metrics=in_period)


def sum_of(metrics: Mapping[str, cloudwatch.Metric], period: Duration = MINUTE) -> cloudwatch.MathExpression:
    """0 where none has data. Its graph shows which of the metrics rose. A name may have dashes, and an id may not."""
    by_id = {name.replace("-", "_"): metric for name, metric in metrics.items()}
    return math(" + ".join(f"FILL({id_}, 0)" for id_ in by_id), period, **by_id)


def over_lanes(config: StageConfig, metric: Metric) -> cloudwatch.MathExpression:
    return sum_of({lane.value: tidemill_metric(config, lane, metric) for lane in Lane})


def all_messages(queue: sqs.Queue, *, config: StageConfig) -> AnyMetric:
    """All messages of a queue that is empty when the system is healthy.

    A sweep, and an operator who looks at messages in the console, hide them for a while. An alarm on the visible ones
    would resolve then, and fire again.
    """
    visible = queue.metric_approximate_number_of_messages_visible(period=MINUTE, statistic="Maximum")
    hidden = queue.metric_approximate_number_of_messages_not_visible(period=MINUTE, statistic="Maximum")
    return math("visible + hidden", visible=visible, hidden=hidden) if config.metric_math else visible


def invocations(function: lambda_.IFunction) -> cloudwatch.Metric:
    return function.metric_invocations(statistic="Sum")


def server_errors(api: Api) -> cloudwatch.Metric:
    """Requests that the API answered with 5xx."""
    return api.api.metric_server_error(statistic="Sum")


def failed_submissions(config: StageConfig, submit: JobFunction, window: timedelta) -> AnyMetric:
    """Percent of the submissions, without the jobs that are added in other ways: a fan-out may add a hundred for each.

    Not the metric `5xx` of the API: it counts what strain and pauses refuse, too, and comes at another time than the
    metrics of the engine, so a difference of the two would fire falsely. A call of `submit` that crashes, times out or
    is throttled logs no metric, and Lambda counts it.
    """
    bad = "failed + errors + throttles"
    return math(
        f"IF({bad} >= {LEAST_BAD_EVENTS}, 100 * ({bad}) / ({bad} + {' + '.join(Lane)}), 0)",
        Duration.minutes(window // timedelta(minutes=1)),
        failed=tidemill_metric(config, Lane.DEFAULT, Metric.SUBMISSIONS_FAILED),
        errors=submit.function.metric_errors(statistic="Sum"),
        throttles=submit.function.metric_throttles(statistic="Sum"),
        **{lane.value: tidemill_metric(config, lane, Metric.SUBMITTED) for lane in Lane},
    )


def unreached_submit(api: JobApi, *, config: StageConfig) -> AnyMetric:
    """1 if the API answers with 5xx and calls no `submit`, as when it may not invoke the function.

    Canaries call it each minute, unless callers send tokens. Where they do not, there may be no submission while
    `query` fails: there it is 1 only if the API calls none of its functions.
    """
    called = [api.submit] if config.canary and not config.jwt_issuer else api.functions
    calls = {function.verb: invocations(function.function) for function in called}
    filled = " + ".join(f"FILL({verb}, 0)" for verb in calls)
    return math(f"IF(answered > 0 AND {filled} < 1, 1, 0)", MINUTE, answered=server_errors(api.api), **calls)


def late_starts(config: StageConfig, window: timedelta) -> AnyMetric:
    """Percent of the runs on the lane critical.

    `TC` counts the values within bounds, of which the lower one is excluded:
    https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/Statistics-definitions.html
    """
    late = f"TC({LATE_START // timedelta(milliseconds=1)}:)"
    return math(
        f"IF(late >= {LEAST_BAD_EVENTS}, 100 * late / runs, 0)",
        Duration.minutes(window // timedelta(minutes=1)),
        late=tidemill_metric(config, Lane.CRITICAL, Metric.START_LATENCY, statistic=late),
        runs=tidemill_metric(config, Lane.CRITICAL, Metric.START_LATENCY, statistic="SampleCount"),
    )


def canary_latency(config: StageConfig, lane: Lane) -> AnyMetric:
    """In milliseconds."""
    latency = tidemill_metric(config, lane, Metric.CANARY_LATENCY, statistic="Maximum")
    return math(f"FILL(latency, {SILENT_CANARY_MS})", latency=latency)


def failed_jobs(config: StageConfig, lane: Lane) -> AnyMetric:
    """Percent of the jobs of the lane that ended."""
    return math(
        f"IF(failed >= {LEAST_FAILED_JOBS}, 100 * failed / (failed + succeeded), 0)",
        Duration.minutes(5),
        failed=tidemill_metric(config, lane, Metric.FAILED),
        succeeded=tidemill_metric(config, lane, Metric.SUCCEEDED),
    )


def attempts_per_success(config: StageConfig, **dimension: str) -> AnyMetric:
    """Attempts for each success of a lane or a type. 0 while few succeed: deaths have alarms of their own."""

    def attempts(statistic: str) -> cloudwatch.Metric:
        return cloudwatch.Metric(
            namespace=METRIC_NAMESPACE,
            metric_name=Metric.ATTEMPTS,
            dimensions_map={"stage": config.label, **dimension},
            statistic=statistic,
        )

    return math(
        f"IF(successes >= {LEAST_SUCCESSES}, attempts, 0)",
        Duration.minutes(15),
        attempts=attempts("Average"),
        successes=attempts("SampleCount"),
    )


def idle_worker(lane: LaneConstruct) -> AnyMetric:
    """1 if messages are visible and the worker neither runs nor is called.

    Lambda counts a call at the minute of its start, so a full lane whose runs are long has minutes without calls.
    https://docs.aws.amazon.com/lambda/latest/dg/monitoring-concurrency.html
    """
    return math(
        "IF(visible > 0 AND FILL(calls, 0) + FILL(running, 0) < 1, 1, 0)",
        visible=lane.queue.metric_approximate_number_of_messages_visible(statistic="Maximum"),
        calls=invocations(lane.worker.function),
        running=lane.worker.function.metric("ConcurrentExecutions", statistic="Maximum"),
    )


def idle_publisher(publisher: Publisher) -> AnyMetric:
    """1 if jobs are submitted or added and the publisher is not called."""
    made = {
        f"{metric.name.lower()}_{lane}": tidemill_metric(publisher.config, lane, metric)
        for metric in (Metric.SUBMITTED, Metric.ADDED)
        for lane in Lane
    }
    return math(
        f"IF({' + '.join(made)} > 0 AND FILL(calls, 0) < 1, 1, 0)",
        Duration.minutes(5),
        calls=invocations(publisher.function.function),
        **made,
    )


def broken_invariants(config: StageConfig) -> AnyMetric:
    """Undeliverable jobs, and unreadable items: the default lane counts these, since theirs could not be read."""
    undeliverable = {lane.value: tidemill_metric(config, lane, Metric.UNDELIVERABLE) for lane in Lane}
    return sum_of(undeliverable | {"unreadable": tidemill_metric(config, Lane.DEFAULT, Metric.UNREADABLE)})


def stopped_reconcile(scheduled: ScheduledFunctions, period: Duration, *, config: StageConfig) -> AnyMetric:
    """1 if wake is called and reconcile is not. Calls of wake show that the stack is not new."""
    return math(
        f"IF(wake >= {10 * config.wake_parts} AND FILL(reconcile, 0) < 1, 1, 0)",
        period,
        wake=invocations(scheduled.wake.function),
        reconcile=invocations(scheduled.reconcile.function),
    )


def largest(config: StageConfig, metric: Metric, period: Duration) -> cloudwatch.Metric:
    """The largest value of a metric of reconcile, which belongs to no lane and is counted with the default one."""
    return tidemill_metric(config, Lane.DEFAULT, metric, statistic="Maximum", period=period)


def throttles(table: dynamodb.ITable, kind: str, *, index: str = "") -> cloudwatch.Metric:
    """`kind` is `Read` or `Write`. A throttled index throttles its table, and has a metric of its own."""
    dimensions = {"TableName": table.table_name} | ({"GlobalSecondaryIndexName": index} if index else {})
    return cloudwatch.Metric(
        namespace="AWS/DynamoDB",
        metric_name=f"{kind}ThrottleEvents",
        dimensions_map=dimensions,
        statistic="Sum",
        label=f"{kind.lower()} {index}".rstrip(),
    )


def used_concurrency() -> AnyMetric:
    """Percent of the account's quota.

    https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch-Quotas-Visualize-Alarms.html
    """
    used = cloudwatch.Metric(
        namespace="AWS/Usage",
        metric_name="ResourceCount",
        dimensions_map={"Service": "Lambda", "Type": "Resource", "Resource": "ConcurrentExecutions", "Class": "None"},
        statistic="Maximum",
    )
    return math("100 * used / SERVICE_QUOTA(used)", used=used)


def undelivered(topic: sns.Topic) -> AnyMetric:
    """1 if messages of the last 15 minutes reached no subscriber.

    https://docs.aws.amazon.com/sns/latest/dg/sns-monitoring-using-cloudwatch.html
    """
    return math(
        "IF(published > 0 AND FILL(delivered, 0) < 1, 1, 0)",
        Duration.minutes(15),
        published=topic.metric_number_of_messages_published(),
        delivered=topic.metric_number_of_notifications_delivered(),
    )
