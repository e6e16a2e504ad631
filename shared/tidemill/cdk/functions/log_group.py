"""A log group with a retention time. Otherwise Lambda creates a log group that never expires."""

from typing import Final

from aws_cdk import RemovalPolicy
from aws_cdk import aws_logs as logs
from constructs import Construct

from tidemill.cdk.config import StageConfig

RETENTIONS: Final = {
    1: logs.RetentionDays.ONE_DAY,
    3: logs.RetentionDays.THREE_DAYS,
    7: logs.RetentionDays.ONE_WEEK,
    14: logs.RetentionDays.TWO_WEEKS,
    30: logs.RetentionDays.ONE_MONTH,
    60: logs.RetentionDays.TWO_MONTHS,
    90: logs.RetentionDays.THREE_MONTHS,
    180: logs.RetentionDays.SIX_MONTHS,
    365: logs.RetentionDays.ONE_YEAR,
}


def log_group(scope: Construct, id_: str, config: StageConfig, *, name: str | None = None) -> logs.LogGroup:
    return logs.LogGroup(
        scope,
        id_,
        log_group_name=name,
        retention=RETENTIONS[config.log_retention_days],
        removal_policy=RemovalPolicy.RETAIN if config.protected else RemovalPolicy.DESTROY,
    )
