"""A DynamoDB table: on demand, backed up, and protected from deletion where the stage is protected."""

from aws_cdk import RemovalPolicy
from aws_cdk import aws_dynamodb as dynamodb
from constructs import Construct

from tidemill.cdk.config import StageConfig


def on_demand_table(
    scope: Construct,
    *,
    config: StageConfig,
    partition_key: str,
    sort_key: str | None = None,
    ttl_attribute: str | None = None,
    stream: dynamodb.StreamViewType | None = None,
    contributor_insights: bool = False,
    warm_write_units: int = 0,
) -> dynamodb.Table:
    """Keys are strings.

    `Table` and not `TableV2`: conditional writes in one region fence a lease, and replicas with last-writer-wins would
    break the fence. `Table` has no such replicas, so it is the safer resource. Rule packs also check only `Table`.
    """
    return dynamodb.Table(
        scope,
        "Table",
        partition_key=_string(partition_key),
        sort_key=_string(sort_key) if sort_key else None,
        billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
        time_to_live_attribute=ttl_attribute,
        stream=stream,
        contributor_insights_specification=insights(contributor_insights),
        warm_throughput=warm(warm_write_units),
        point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
            point_in_time_recovery_enabled=config.point_in_time_recovery
        ),
        deletion_protection=config.protected,
        removal_policy=RemovalPolicy.RETAIN if config.protected else RemovalPolicy.DESTROY,
    )


def insights(enabled: bool) -> dynamodb.ContributorInsightsSpecification | None:  # noqa: FBT001 - one switch
    """The most accessed and the most throttled keys of a table or an index.

    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/contributorinsights_HowItWorks.html
    """
    return dynamodb.ContributorInsightsSpecification(enabled=True) if enabled else None


def warm(write_units: int) -> dynamodb.WarmThroughput | None:
    """The write units a second that a table or an index can take at once; 0: as DynamoDB has it.

    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/warm-throughput.html
    """
    return dynamodb.WarmThroughput(write_units_per_second=write_units) if write_units else None


def _string(name: str) -> dynamodb.Attribute:
    return dynamodb.Attribute(name=name, type=dynamodb.AttributeType.STRING)
