"""The partitions of the indexes: each write chooses one, and each read finds the entries of all of them, in order."""

from collections.abc import Iterator

import pytest

from tests.support.builders import NOW
from tidemill.application.ports import WHOLE, Part
from tidemill.domain.states import State
from tidemill.dynamodb.indexes import Indexes, merged
from tidemill.names import LARGEST_INDEX_SHARDS

SHARDS = range(LARGEST_INDEX_SHARDS)


@pytest.mark.parametrize("shards", [0, -1, LARGEST_INDEX_SHARDS + 1])
def test_a_number_of_partitions_that_no_read_covers_is_refused(shards: int) -> None:
    with pytest.raises(ValueError, match=f"index shards {shards} must be from 1 to {LARGEST_INDEX_SHARDS}"):
        Indexes(shards=shards)


@pytest.mark.parametrize("shards", [1, 3, LARGEST_INDEX_SHARDS])
def test_jobs_are_spread_over_all_partitions(shards: int) -> None:
    indexes = Indexes(shards=shards, listed=True)
    ids = [f"job-{number}" for number in range(200)]

    assert {indexes.attention(State.DEAD, each, NOW)["attention"]["S"] for each in ids} == {
        f"dead#{number}" for number in range(shards)
    }
    assert {indexes.listing("t", each)["listing"]["S"] for each in ids} == {f"t#{number}" for number in range(shards)}


def test_a_job_is_listed_only_where_a_listing_is_kept() -> None:
    assert Indexes().listing("t", "a") == {}


@pytest.mark.parametrize("reverse", [False, True])
def test_the_entries_of_all_partitions_come_in_order(reverse: bool) -> None:
    def read(shard: int) -> Iterator[int]:
        yield from sorted(range(shard, 40, LARGEST_INDEX_SHARDS), reverse=reverse)

    assert list(merged(read, reverse=reverse)) == sorted(range(40), reverse=reverse)
    assert list(merged(read, reverse=reverse, key=lambda each: each)) == sorted(range(40), reverse=reverse)


@pytest.mark.parametrize("count", [2, LARGEST_INDEX_SHARDS + 1])
def test_the_parts_of_a_read_have_each_partition_once(count: int) -> None:
    read = [
        shard
        for number in range(count)
        for shard in merged(lambda shard: iter([shard]), part=Part(number=number, count=count))
    ]

    assert sorted(read) == [*SHARDS]


def test_every_partition_is_asked_before_the_first_entry_is_used() -> None:
    """So the calls overlap: most partitions may be empty."""
    asked = set[int]()

    def read(shard: int) -> Iterator[int]:
        asked.add(shard)
        yield shard

    entries = merged(read, part=WHOLE)

    assert asked == {*SHARDS}
    assert next(entries) == 0
