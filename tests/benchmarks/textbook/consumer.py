"""The consumer of the textbook build: the batch processor, and an idempotent function for each record."""

import json
import os
from typing import Any, Final

import boto3
from aws_lambda_powertools import Logger
from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType, process_partial_response
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from aws_lambda_powertools.utilities.idempotency import (
    DynamoDBPersistenceLayer,
    IdempotencyConfig,
    idempotent_function,
)

from tests.benchmarks.textbook.work import Work, do

logger: Final = Logger(service="textbook-consumer")
processor: Final = BatchProcessor(event_type=EventType.SQS)
dynamodb: Final = boto3.client("dynamodb")
config: Final = IdempotencyConfig(event_key_jmespath="id")
layer: Final = DynamoDBPersistenceLayer(table_name=os.environ["TEXTBOOK_IDEMPOTENCY_TABLE"])


@idempotent_function(data_keyword_argument="message", config=config, persistence_store=layer)  # type: ignore[untyped-decorator]
def run(message: dict[str, Any]) -> dict[str, bool]:
    set_status(message["id"], "RUNNING")
    result = do(Work.model_validate(message["payload"]))
    set_status(message["id"], "SUCCEEDED", result)
    logger.info("job succeeded", extra={"job_id": message["id"]})
    return result


def set_status(job_id: str, status: str, result: dict[str, bool] | None = None) -> None:
    dynamodb.update_item(
        TableName=os.environ["TEXTBOOK_JOBS_TABLE"],
        Key={"id": {"S": job_id}},
        UpdateExpression="SET #status = :status, #result = :result",
        ExpressionAttributeNames={"#status": "status", "#result": "result"},
        ExpressionAttributeValues={":status": {"S": status}, ":result": {"S": json.dumps(result)}},
    )


def record_handler(record: SQSRecord) -> Any:
    return run(message=json.loads(record.body))


@logger.inject_lambda_context
def handle(event: dict[str, Any], context: Any) -> Any:
    config.register_lambda_context(context)
    return process_partial_response(event=event, record_handler=record_handler, processor=processor, context=context)
