"""Counts what the attention index holds, without a read of any document, and at a bounded price."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from heapq import nlargest
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from tidemill.application.ports import WHOLE, Part
from tidemill.aws.attribute_values import text
from tidemill.aws.clients import POOL_SIZE, Item, translated
from tidemill.domain.states import State
from tidemill.domain.waiting.waiting import Cause, Line
from tidemill.dynamodb.dispatch.owed_items import owed_partitions
from tidemill.dynamodb.document import split_key
from tidemill.dynamodb.indexes import attention_partition, line_partition
from tidemill.names import ATTENTION_INDEX, ATTENTION_KEY, ATTENTION_SORT_KEY, LARGEST_INDEX_SHARDS

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

#: The most entries of one partition that are read: about 15 read units.
MOST_COUNTED: Final = 1000
#: The most lines whose parked jobs a count reads.
MOST_LINES: Final = 50
#: The most lines among which it chooses them. An entry of the index is small.
MOST_LINES_FOUND: Final = 1000


class Counted(Struct, frozen=True):
    """`number` entries; more than that if it is not `exact`."""

    number: int
    exact: bool = True

    def __add__(self, other: "Counted") -> "Counted":
        return Counted(self.number + other.number, self.exact and other.exact)


class Newest(Struct, frozen=True, kw_only=True):
    """The number of jobs, and the tenant and id of the last ones."""

    counted: Counted
    keys: Sequence[tuple[str, str]]


class ParkedJobs(Struct, frozen=True, kw_only=True):
    """The parked jobs of each line, the longest line first. More lines exist if `all_lines` is false."""

    lines: tuple[tuple[Line, Counted], ...]
    all_lines: bool
    #: The lines without a parked job: one that was released is on its way, such as the probe of a breaker.
    empty: tuple[Line, ...] = ()

    @property
    def total(self) -> Counted:
        return sum((counted for _, counted in self.lines), Counted(0, self.all_lines))


class AttentionCounts:
    """The attention index of one table.

    The index lags by a moment. It holds an expired job until DynamoDB deletes it, which may take days.
    """

    def __init__(self, client: "DynamoDBClient", *, table: str) -> None:
        self._client = client
        self._table = table

    def jobs(self, state: State, *, most: int = MOST_COUNTED) -> Counted:
        """Count the jobs of `State.SCHEDULED` or `State.DEAD`: about `most` of each partition."""
        return self._sum(_partitions(state), most=most)

    def owed(self) -> Counted:
        """The owed work of publish."""
        return self._sum(list(owed_partitions()))

    def parked(self, lines: Callable[[Part], Iterator[Line]]) -> ParkedJobs:
        """The jobs in the lines that `lines` yields: those that wake has to look at.

        A type may have thousands of limit keys. So the other lines come first: an open breaker must not be missing.
        """
        found = list(islice(lines(WHOLE), MOST_LINES_FOUND + 1))
        found.sort(key=lambda line: line.cause is Cause.LIMIT)
        counts = self._each([line_partition(line) for line in found[:MOST_LINES]])
        counted = sorted(zip(found, counts, strict=False), key=lambda entry: -entry[1].number)
        return ParkedJobs(
            lines=tuple((line, count) for line, count in counted if count.number),
            all_lines=len(found) <= MOST_LINES,
            empty=tuple(line for line, count in counted if not count.number),
        )

    def in_line(self, line: Line) -> Counted:
        """The jobs of one line."""
        return self._count(line_partition(line), most=MOST_COUNTED)

    def newest(self, state: State, *, most: int) -> Newest:
        """The last `most` jobs of all partitions. The entries that are read for the count name them.

        `most` is at most `MOST_COUNTED`.
        """
        read = partial(self._query, ScanIndexForward=False, Limit=MOST_COUNTED)
        with ThreadPoolExecutor(POOL_SIZE) as pool:
            pages = list(pool.map(read, _partitions(state)))
        entries = nlargest(most, chain.from_iterable(page["Items"] for page in pages), key=_at)
        return Newest(counted=sum(map(_counted, pages), Counted(0)), keys=[split_key(entry) for entry in entries])

    def _sum(self, partitions: list[str], *, most: int = MOST_COUNTED) -> Counted:
        return sum(self._each(partitions, most=most), Counted(0))

    def _each(self, partitions: list[str], *, most: int = MOST_COUNTED) -> list[Counted]:
        with ThreadPoolExecutor(POOL_SIZE) as pool:
            return list(pool.map(partial(self._count, most=most), partitions))

    def _count(self, partition: str, *, most: int) -> Counted:
        """A count costs as many read units as the entries themselves. A page of it is a megabyte at most.

        https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Query.Other.html
        """
        page = self._query(partition, Select="COUNT", Limit=most)
        counted = _counted(page)
        while not counted.exact and counted.number < most:
            page = self._query(
                partition, Select="COUNT", Limit=most - counted.number, ExclusiveStartKey=page["LastEvaluatedKey"]
            )
            counted = Counted(counted.number + page["Count"], exact="LastEvaluatedKey" not in page)
        return counted

    def _query(self, partition: str, **options: Any) -> Any:
        with translated():
            return self._client.query(
                TableName=self._table,
                IndexName=ATTENTION_INDEX,
                KeyConditionExpression="#partition = :partition",
                ExpressionAttributeNames={"#partition": ATTENTION_KEY},
                ExpressionAttributeValues={":partition": text(partition)},
                **options,
            )


def _partitions(state: State) -> list[str]:
    return [attention_partition(state, shard) for shard in range(LARGEST_INDEX_SHARDS)]


def _counted(page: Any) -> Counted:
    return Counted(page["Count"], exact="LastEvaluatedKey" not in page)


def _at(entry: Item) -> int:
    return int(entry[ATTENTION_SORT_KEY]["N"])
