"""`POST /jobs` of the textbook build: an idempotent function that stores the job and sends its message."""

import json
import os
import uuid
from typing import Any, Final

import boto3
from aws_lambda_powertools import Logger
from aws_lambda_powertools.event_handler import APIGatewayHttpResolver, Response
from aws_lambda_powertools.utilities.idempotency import (
    DynamoDBPersistenceLayer,
    IdempotencyConfig,
    idempotent_function,
)

from tests.benchmarks.textbook.work import Work

logger: Final = Logger(service="textbook-producer")
app: Final = APIGatewayHttpResolver()
dynamodb: Final = boto3.client("dynamodb")
sqs: Final = boto3.client("sqs")
config: Final = IdempotencyConfig(event_key_jmespath="key")
layer: Final = DynamoDBPersistenceLayer(table_name=os.environ["TEXTBOOK_IDEMPOTENCY_TABLE"])


@idempotent_function(data_keyword_argument="submission", config=config, persistence_store=layer)  # type: ignore[untyped-decorator]
def create(submission: dict[str, Any]) -> dict[str, Any]:
    job = {"id": str(uuid.uuid4()), "status": "PENDING", "payload": submission["payload"]}
    dynamodb.put_item(
        TableName=os.environ["TEXTBOOK_JOBS_TABLE"],
        Item={name: {"S": value if isinstance(value, str) else json.dumps(value)} for name, value in job.items()},
    )
    message = json.dumps({"id": job["id"], "payload": job["payload"]})
    sqs.send_message(QueueUrl=os.environ["TEXTBOOK_QUEUE"], MessageBody=message)
    logger.info("job created", extra={"job_id": job["id"]})
    return job


@app.post("/jobs")
def submit() -> Response[str]:
    body = app.current_event.json_body
    Work.model_validate(body["payload"])
    key = app.current_event.headers.get("idempotency-key") or str(uuid.uuid4())
    job = create(submission={"key": key, "payload": body["payload"]})
    return Response(202, "application/json", json.dumps(job))


@logger.inject_lambda_context
def handle(event: dict[str, Any], context: Any) -> dict[str, Any]:
    config.register_lambda_context(context)
    return app.resolve(event, context)
