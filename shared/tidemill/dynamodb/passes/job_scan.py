"""Scans the table page by page for jobs, for the questions of operators that no index answers."""

from typing import TYPE_CHECKING, Any, Final

from tidemill.application.job_filter import JobFilter
from tidemill.application.passes.job_search import JobPage
from tidemill.application.ports import UnreadableItem
from tidemill.aws.attribute_values import text
from tidemill.aws.clients import Item, translated
from tidemill.domain.errors import MalformedDocumentError
from tidemill.domain.job import Job
from tidemill.dynamodb.document import decode, key
from tidemill.names import JOB_KEY, STATE_ATTRIBUTE

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

#: A page is short enough to show progress each second, at the default rate and 1 KB an item.
_ITEMS: Final = 1000
_MOST_OPERANDS: Final = 100


class DynamoJobScan:
    """`JobScan` of one table."""

    def __init__(self, client: "DynamoDBClient", *, table: str) -> None:
        self._client = client
        self._table = table

    def page(self, wanted: JobFilter, *, after: str | None) -> JobPage:
        """The filter saves transfer and decoding, but DynamoDB reads and charges every item of the page.

        Read eventually, which costs half: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Scan.html
        """
        # Only jobs have a state.
        clauses, names = [f"attribute_exists(#{STATE_ATTRIBUTE})"], {f"#{STATE_ATTRIBUTE}": STATE_ATTRIBUTE}
        values: dict[str, Item] = {}
        for name, chosen in ((STATE_ATTRIBUTE, wanted.states), ("type", wanted.types)):
            # DynamoDB takes at most 100 operands of IN. The caller filters again:
            # https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Expressions.OperatorsAndFunctions.html
            if chosen and len(chosen) <= _MOST_OPERANDS:
                operands = {f":{name}{number}": text(value) for number, value in enumerate(chosen)}
                clauses.append(f"#{name} IN ({', '.join(operands)})")
                names[f"#{name}"] = name
                values |= operands
        if wanted.tag is not None:
            clauses.append("contains(#tags, :tag)")
            names["#tags"] = "tags"
            values[":tag"] = text(wanted.tag)
        further: dict[str, Any] = {"ExpressionAttributeValues": values} if values else {}
        if after is not None:
            further["ExclusiveStartKey"] = {JOB_KEY: text(after)}
        with translated():
            answer: Any = self._client.scan(
                TableName=self._table,
                Limit=_ITEMS,
                ReturnConsumedCapacity="TOTAL",
                FilterExpression=" AND ".join(clauses),
                ExpressionAttributeNames=names,
                **further,
            )
        last = answer.get("LastEvaluatedKey")
        return JobPage(
            found=[_found(item) for item in answer["Items"]],
            cursor=last[JOB_KEY]["S"] if last else None,
            items=answer["ScannedCount"],
            read_units=answer["ConsumedCapacity"]["CapacityUnits"],
        )

    @staticmethod
    def cursor_after(job: Job) -> str:
        return str(key(job.tenant, job.id)[JOB_KEY]["S"])


def _found(item: Item) -> Job | UnreadableItem:
    try:
        return decode(item)
    except MalformedDocumentError as error:
        return UnreadableItem(item[JOB_KEY]["S"], error)
