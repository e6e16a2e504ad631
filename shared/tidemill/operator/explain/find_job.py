"""Finds the tenants that have a job of an id: the table is keyed by tenant and id.

The search is bounded, because only a scan of the whole table could say that no tenant has the job.
"""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from tidemill.aws.attribute_values import text
from tidemill.aws.clients import POOL_SIZE, translated
from tidemill.domain.states import State
from tidemill.dynamodb.document import key, split_key
from tidemill.dynamodb.indexes import attention_partition
from tidemill.names import ATTENTION_INDEX, ATTENTION_KEY, JOB_KEY, LARGEST_INDEX_SHARDS, SCHEDULE_TENANT

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

#: A search reads so many entries of each partition of the index at most: about 300 read units.
_MOST_ENTRIES: Final = 20_000
#: A search of the table reads so many pages of 1 MB at most: 640 read units.
_MOST_PAGES: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The tenants, in order. If `everywhere` is false, other tenants may have such a job, too."""

    tenants: Sequence[str]
    everywhere: bool


class JobFinder:
    """Searches one table."""

    def __init__(self, client: "DynamoDBClient", *, table: str) -> None:
        self._client = client
        self._table = table

    def any_job(self, job_id: str, *, likely: Sequence[str] = ()) -> Found:
        """`likely` tenants are looked at first. Then the sparse index, and then some pages of the table."""
        for tenant in dict.fromkeys([*likely, SCHEDULE_TENANT]):
            if self._exists(tenant, job_id):
                return Found(tenants=[tenant], everywhere=False)
        for state in (State.DEAD, State.SCHEDULED):
            if (found := self.indexed(job_id, state)).tenants:
                return found
        return self._gathered(job_id, [self._scan(job_id)])

    def indexed(self, job_id: str, state: State) -> Found:
        """Find a dead or scheduled job in the index, which may lag: the job may have left that state."""
        partitions = [attention_partition(state, shard) for shard in range(LARGEST_INDEX_SHARDS)]
        with ThreadPoolExecutor(POOL_SIZE) as pool:
            results = list(pool.map(lambda partition: list(self._partition(partition, job_id)), partitions))
        return self._gathered(job_id, results)

    def _exists(self, tenant: str, job_id: str) -> bool:
        with translated():
            answer = self._client.get_item(
                TableName=self._table,
                Key=key(tenant, job_id),
                ProjectionExpression="#pk",
                ExpressionAttributeNames={"#pk": JOB_KEY},
            )
        return "Item" in answer

    def _gathered(self, job_id: str, results: Sequence[Iterator[Any] | Sequence[Any]]) -> Found:
        """From pages of items. A page that is not the last has a key to go on from."""
        tenants: set[str] = set()
        everywhere = True
        for pages in results:
            last: Any = {}
            for last in pages:
                for item in last["Items"]:
                    tenant, found_id = split_key(item)
                    if found_id == job_id:
                        tenants.add(tenant)
            everywhere = everywhere and "LastEvaluatedKey" not in last
        return Found(tenants=sorted(tenants), everywhere=everywhere)

    def _partition(self, partition: str, job_id: str) -> Iterator[Any]:
        query = partial(
            self._client.query,
            IndexName=ATTENTION_INDEX,
            KeyConditionExpression="#partition = :partition",
            **self._filter(job_id, {"#partition": ATTENTION_KEY}, {":partition": text(partition)}),
        )
        read = 0
        for page in _pages(query):
            yield page
            read += page["ScannedCount"]
            if read >= _MOST_ENTRIES:
                return

    def _scan(self, job_id: str) -> Iterator[Any]:
        scan = partial(self._client.scan, ProjectionExpression="#pk", **self._filter(job_id, {}, {}))
        for number, page in enumerate(_pages(scan), 1):
            yield page
            if number == _MOST_PAGES:
                return

    def _filter(self, job_id: str, names: dict[str, str], values: dict[str, Any]) -> dict[str, Any]:
        """Keep what ends in the id. The caller compares exactly: `contains` is the nearest that DynamoDB offers."""
        return {
            "TableName": self._table,
            "FilterExpression": "contains(#pk, :id)",
            "ExpressionAttributeNames": names | {"#pk": JOB_KEY},
            "ExpressionAttributeValues": values | {":id": text(f"#{job_id}")},
        }


def _pages(call: Any) -> Iterator[Any]:
    start: dict[str, Any] = {}
    while True:
        with translated():
            page = call(**start)
        yield page
        if "LastEvaluatedKey" not in page:
            return
        start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}
