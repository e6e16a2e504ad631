"""Where the runtime configuration of a deployment is: its jobs table, or the table with a copy in AppConfig."""

from tidemill.application.configuration import ConfigurationStore
from tidemill.aws import clients
from tidemill.dynamodb.operations.configuration_item import DynamoConfiguration
from tidemill.operator.deployments.deployment import Deployment


def configuration_store(deployment: Deployment) -> ConfigurationStore:
    table, place = deployment.jobs_table, deployment.app_config
    record = DynamoConfiguration(clients.dynamodb(), table=table)
    if not place:
        return record
    from tidemill.powertools import app_config  # noqa: PLC0415 - Powertools is not needed for other stages

    return app_config.over(record, place=place, table=table)
