"""`tidemill_metric`: a metric that the functions write for one lane."""

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch

from tidemill import names
from tidemill.cdk.config import StageConfig
from tidemill.metrics import METRIC_NAMESPACE, Metric


def tidemill_metric(
    config: StageConfig,
    lane: names.Lane,
    metric: Metric,
    *,
    statistic: str = "Sum",
    label: str | None = None,
    period: Duration | None = None,
) -> cloudwatch.Metric:
    return cloudwatch.Metric(
        namespace=METRIC_NAMESPACE,
        metric_name=metric,
        dimensions_map={"stage": config.label, "lane": lane},
        statistic=statistic,
        period=period or Duration.minutes(1),
        label=label,
    )
