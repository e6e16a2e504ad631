"""The item that leads from the name of a burst to its job, and the transaction that begins a burst."""

from typing import TYPE_CHECKING

from tidemill.aws.clients import Item, translated
from tidemill.domain.errors import MalformedDocumentError, WriteRefusedError
from tidemill.domain.job import Job
from tidemill.domain.states import Write
from tidemill.dynamodb.debounce.debounce_writes import JOB_ATTRIBUTE, debounce_item_key, lead_to
from tidemill.dynamodb.groups.groups import retried
from tidemill.dynamodb.transactions import Part, RefusedError, own, transact
from tidemill.dynamodb.update_requests import Request
from tidemill.names import JOB_KEY

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


def job_of(client: "DynamoDBClient", tenant: str, name: str, *, table: str) -> str | None:
    """The id of the job to which the name leads. Raises `MalformedDocumentError` if it cannot be read."""
    with translated():
        answer = client.get_item(TableName=table, Key=debounce_item_key(tenant, name), ConsistentRead=True)
    return _job_in(answer["Item"]) if "Item" in answer else None


def _job_in(item: Item) -> str:
    try:
        return str(item[JOB_ATTRIBUTE]["S"])
    except KeyError as error:
        raise MalformedDocumentError(f"the item {item[JOB_KEY]['S']} names no job: {error!r}") from error


def begin(client: "DynamoDBClient", job: Job, insertion: Request, *, after: str | None, table: str) -> Job:
    """Insert the job, and let the name of its burst lead to it instead of to `after`.

    Raises `WriteRefusedError` if another burst has begun, and `TransactionConflictError` if others were faster for a
    second.
    """
    entries = [
        own("Update", lead_to(job, after=after), table=table),
        own("Put", insertion, table=table, part=Part.PARTNER),
    ]
    try:
        retried(lambda: transact(client, entries))
    except RefusedError as refused:
        # An earlier send of it was applied if the name leads to this job.
        if any(refusal.item and _job_in(refusal.item) == job.id for refusal in refused.of(Part.OWN)):
            return job
        raise WriteRefusedError(Write.INSERT, None) from None
    return job
