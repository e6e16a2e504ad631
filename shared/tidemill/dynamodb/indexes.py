"""The indexes of the jobs table: a write spreads jobs over some partitions, and a read finds them in any of them."""

import heapq
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from itertools import chain, islice
from typing import Any, Final, TypeVar
from zlib import crc32

from msgspec import Struct

from tidemill.application.ports import WHOLE, Part
from tidemill.aws.attribute_values import milliseconds, text
from tidemill.aws.clients import POOL_SIZE, Item
from tidemill.domain.states import State
from tidemill.domain.waiting.waiting import Line
from tidemill.names import ATTENTION_KEY, ATTENTION_SORT_KEY, INDEX_SHARDS, LARGEST_INDEX_SHARDS, LISTING_KEY

Entry = TypeVar("Entry")


class Indexes(Struct, frozen=True, kw_only=True):
    """The attributes that put a job into an index. They choose one of `shards` partitions by the id of the job."""

    #: Whether the listing index holds every job.
    listed: bool = False
    shards: int = INDEX_SHARDS

    def __post_init__(self) -> None:
        if not 1 <= self.shards <= LARGEST_INDEX_SHARDS:
            raise ValueError(f"index shards {self.shards} must be from 1 to {LARGEST_INDEX_SHARDS}, which reads query")

    def attention(self, state: State, job_id: str, at: datetime) -> dict[str, Item]:
        """Scheduled jobs by due time, dead jobs by time of death."""
        partition = attention_partition(state, self._shard(job_id))
        return {ATTENTION_KEY: text(partition), ATTENTION_SORT_KEY: milliseconds(at)}

    def listing(self, tenant: str, job_id: str) -> dict[str, Item]:
        return {LISTING_KEY: text(listing_partition(tenant, self._shard(job_id)))} if self.listed else {}

    def _shard(self, job_id: str) -> int:
        return crc32(job_id.encode()) % self.shards


NOT_LISTED: Final = Indexes()


def attention_partition(state: State, shard: int) -> str:
    return f"{state}#{shard}"


def in_line(line: Line, at: datetime) -> dict[str, Item]:
    """The attributes of a parked job. Each line is a partition of its own, in its order."""
    return {ATTENTION_KEY: text(line_partition(line)), ATTENTION_SORT_KEY: milliseconds(at)}


def line_partition(line: Line) -> str:
    return f"{State.PARKED}#{line.cause}#{line.key}"


def listing_partition(tenant: str, shard: int) -> str:
    return f"{tenant}#{shard}"


def merged(
    read: Callable[[int], Iterator[Entry]],
    *,
    part: Part = WHOLE,
    key: Callable[[Entry], Any] | None = None,
    reverse: bool = False,
) -> Iterator[Entry]:
    """The entries of all shards in order. `read` returns those of one shard in order.

    All parts together have every shard that a write may have chosen, under any setting and in any version of the code
    that runs meanwhile. The first queries overlap, because most of them may find nothing.
    """
    shards = range(LARGEST_INDEX_SHARDS)[part.number :: part.count]
    with ThreadPoolExecutor(POOL_SIZE) as pool:
        begun = list(pool.map(_begun, map(read, shards)))
    return heapq.merge(*begun, key=key, reverse=reverse)


def _begun(entries: Iterator[Entry]) -> Iterator[Entry]:
    """The same entries, of which the first has been read."""
    return chain(list(islice(entries, 1)), entries)
