"""`JobTable`: the table of job documents. One item is one job. The table's stream dispatches it."""

from collections.abc import Mapping
from typing import Any

from aws_cdk import Annotations, Stack
from aws_cdk import aws_dynamodb as dynamodb
from constructs import Construct

from tidemill import names
from tidemill.application.dispatch.owed import Kind
from tidemill.cdk.config import StageConfig
from tidemill.cdk.storage.on_demand_table import insights, on_demand_table, warm


class JobTable(Construct):
    """No sort key: the engine reads single jobs by key, and several jobs through an index.

    With `config.jobs_stream` it is an existing table, such as one restored from a backup. CloudFormation then changes
    nothing of it.
    """

    def __init__(self, scope: Construct, id_: str, *, config: StageConfig) -> None:
        super().__init__(scope, id_)
        self._config = config
        self.indexes = [names.ATTENTION_INDEX, *([names.LISTING_INDEX] if config.listing else [])]
        self.table: dynamodb.ITable = self._adopted() if config.jobs_stream else self._created()

    @property
    def stream_arn(self) -> str:
        arn = self.table.table_stream_arn
        assert arn is not None  # noqa: S101 - both kinds of table have a stream
        return arn

    def index_arn(self, index: str) -> str:
        return f"{self.table.table_arn}/index/{index}"

    def _created(self) -> dynamodb.Table:
        table = on_demand_table(
            self,
            config=self._config,
            partition_key=names.JOB_KEY,
            ttl_attribute=names.TTL_ATTRIBUTE,
            # Both images: only the comparison with the old image shows whether a change must dispatch a message.
            stream=dynamodb.StreamViewType.NEW_AND_OLD_IMAGES,
            contributor_insights=self._config.contributor_insights,
            warm_write_units=self._config.warm_write_units,
        )
        self._add_index(table, names.ATTENTION_INDEX, names.ATTENTION_KEY, names.ATTENTION_SORT_KEY)
        if self._config.listing:
            self._add_index(table, names.LISTING_INDEX, names.LISTING_KEY, names.LISTING_SORT_KEY)
        return table

    def _adopted(self) -> dynamodb.ITable:
        Annotations.of(self).add_warning_v2(
            "tidemill:adopted-table",
            "jobs_stream names an existing table: its indexes, TTL, backups and protection are not in this stack. "
            "`tidemill recover` sets them on a restored table.",
        )
        table_arn, _, _ = self._config.jobs_stream.partition("/stream/")
        # These are the settings that `_created` makes.
        properties = {
            "TableName": table_arn.rpartition("/")[2],
            "StreamSpecification": {"StreamViewType": dynamodb.StreamViewType.NEW_AND_OLD_IMAGES.value},
            "TimeToLiveSpecification": {"AttributeName": names.TTL_ATTRIBUTE, "Enabled": True},
            "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": self._config.point_in_time_recovery},
            "DeletionProtectionEnabled": self._config.protected,
        }
        Stack.of(self).add_metadata(names.ADOPTED_TABLE, {"Type": "AWS::DynamoDB::Table", "Properties": properties})
        return dynamodb.Table.from_table_attributes(
            self, "Table", table_arn=table_arn, table_stream_arn=self._config.jobs_stream
        )

    def _add_index(self, table: dynamodb.Table, name: str, partition_key: str, sort_key: str) -> None:
        """Keys only: the engine then reads the documents themselves, which are never stale."""
        table.add_global_secondary_index(
            index_name=name,
            partition_key=dynamodb.Attribute(name=partition_key, type=dynamodb.AttributeType.STRING),
            sort_key=dynamodb.Attribute(name=sort_key, type=dynamodb.AttributeType.NUMBER),
            projection_type=dynamodb.ProjectionType.KEYS_ONLY,
            contributor_insights_specification=insights(self._config.contributor_insights),
            warm_throughput=warm(self._config.warm_write_units),
        )


def items_of(tenant: str) -> Mapping[str, Any]:
    """The condition that a call names only keys of jobs and payloads of `tenant`, which begin with the tenant.

    Not for a tenant with groups or limits, whose items have other keys, nor for one whose name has a `*` or `?`.
    https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/specifying-conditions.html
    """
    return items_like(f"{tenant}#*", f'{names.PAYLOAD_PREFIX}["{tenant}",*')


def debounce_items_of(tenant: str) -> Mapping[str, Any]:
    """Conditions for the jobs of `tenant` and the items of its debounce keys."""
    return items_like(f"{tenant}#*", f'{names.DEBOUNCE_PREFIX}["{tenant}",*')


def deletions_owed_to(tenant: str | None) -> str:
    """The keys of owed deletions of payloads, of this tenant or of all."""
    of_tenant = "" if tenant is None else f'"{tenant}",'
    return f'{names.OWED_PREFIX}["{Kind.DELETE_PAYLOAD}",{of_tenant}*'


def items_like(*keys: str) -> Mapping[str, Any]:
    """The condition that a call names only such keys."""
    return {
        "ForAllValues:StringLike": {"dynamodb:LeadingKeys": list(keys)},
        # `ForAllValues` also holds for a call that names no key:
        # https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-single-vs-multi-valued-context-keys.html
        "Null": {"dynamodb:LeadingKeys": "false"},
    }
