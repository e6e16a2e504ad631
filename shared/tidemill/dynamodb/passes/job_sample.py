"""A sample of the live jobs: whose they are and what they are.

No index holds the jobs that wait on their lanes, because a job that succeeds pays for no such entry. A scan returns the
items in the order of a hash of their keys, which depends neither on age nor on state. So the first items are a fair
sample, at a price that does not grow with the table.
"""

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from tidemill.aws.attribute_values import text
from tidemill.aws.clients import Item, translated
from tidemill.domain.states import State
from tidemill.dynamodb.document import split_key
from tidemill.names import CANARY_TYPE, JOB_KEY

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

#: The states of jobs that have work to do now or after another job.
WAITING: Final = (State.QUEUED, State.RETRYING, State.WAITING, State.PARKED)
#: One page, which DynamoDB ends at 1 MB, and so at most 128 read units.
_ITEMS: Final = 1000


class Sample(Struct, frozen=True, kw_only=True):
    """The waiting jobs among `items` items of the table, without canaries."""

    items: int
    #: Whether the table has no further items.
    whole: bool
    types: Counter[str]
    tenants: Counter[str]

    @property
    def jobs(self) -> int:
        return self.types.total()


def read(client: "DynamoDBClient", *, table: str) -> Sample:
    with translated():
        page: Any = client.scan(
            TableName=table,
            Limit=_ITEMS,
            FilterExpression=f"#state IN ({', '.join(f':{state}' for state in WAITING)}) AND #type <> :canary",
            ProjectionExpression="#pk, #type",
            ExpressionAttributeNames={"#state": "state", "#pk": JOB_KEY, "#type": "type"},
            ExpressionAttributeValues={f":{state}": text(state) for state in WAITING} | {":canary": text(CANARY_TYPE)},
        )
    found: list[Item] = page["Items"]
    return Sample(
        items=page["ScannedCount"],
        whole="LastEvaluatedKey" not in page,
        types=Counter(item["type"]["S"] for item in found),
        tenants=Counter(split_key(item)[0] for item in found),
    )
