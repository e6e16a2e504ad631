"""What the counts of the attention index read, and how they add up."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from tidemill.application.ports import WHOLE, Part
from tidemill.domain.states import State
from tidemill.domain.waiting.waiting import Line
from tidemill.dynamodb.dispatch.owed_items import owed_partitions
from tidemill.dynamodb.indexes import attention_partition, line_partition
from tidemill.dynamodb.operations.attention_counts import (
    MOST_COUNTED,
    MOST_LINES,
    AttentionCounts,
    Counted,
    ParkedJobs,
)
from tidemill.names import LARGEST_INDEX_SHARDS


class Index:
    """The attention index: the number of entries of each partition. A page of it holds at most `page`."""

    def __init__(self, entries: dict[str, int], *, page: int = 10_000) -> None:
        self.entries = entries
        self.page = page
        #: The entries that were read of each partition, and the calls.
        self.read = Counter[str]()
        self.calls = defaultdict[str, list[int]](list)

    def query(self, **request: Any) -> Any:
        assert request["TableName"] == "jobs"
        assert request["IndexName"] == "attention"
        (partition,) = (value["S"] for value in request["ExpressionAttributeValues"].values())
        self.calls[partition].append(request["Limit"])
        assert ("ExclusiveStartKey" in request) is (len(self.calls[partition]) > 1)
        begin = int(request["ExclusiveStartKey"]["n"]) if "ExclusiveStartKey" in request else 0
        end = min(begin + request["Limit"], begin + self.page, self.entries.get(partition, 0))
        self.read[partition] += end - begin
        more = {"LastEvaluatedKey": {"n": str(end)}} if end < self.entries.get(partition, 0) else {}
        if request.get("Select") == "COUNT":
            return {"Count": end - begin, **more}
        assert request["ScanIndexForward"] is False
        newest = range(self.entries.get(partition, 0), 0, -1)[begin:end]
        return {"Count": end - begin, "Items": [_entry(partition, at) for at in newest], **more}


def _entry(partition: str, at: int) -> Any:
    """Return the entry of a job whose tenant has the name of the partition."""
    return {"pk": {"S": f"{partition}#{at}"}, "attention_at": {"N": str(at)}}


def counts(index: Index) -> AttentionCounts:
    return AttentionCounts(index, table="jobs")  # type: ignore[arg-type]  # the one call that it makes


def lines(number: int) -> list[Line]:
    return [Line.for_limit(f"k{each}") for each in range(number)]


def parked(entries: dict[Line, int]) -> ParkedJobs:
    def of(part: Part) -> Iterator[Line]:
        assert part == WHOLE
        yield from entries

    return counts(Index({line_partition(line): number for line, number in entries.items()})).parked(of)


def test_a_count_chooses_among_a_bounded_number_of_lines() -> None:
    rest = iter(lines(1_005))

    counts(Index({})).parked(lambda _part: rest)

    assert len(list(rest)) == 4


@pytest.mark.parametrize("other", [Line.for_breaker("b"), Line.for_pause("lane=bulk"), Line.for_type("t")], ids=str)
def test_no_number_of_limit_keys_hides_another_line(other: Line) -> None:
    found = parked({**dict.fromkeys(lines(2 * MOST_LINES), 5), other: 1})

    assert (other, Counted(1)) in found.lines
    assert len(found.lines) == MOST_LINES
    assert not found.all_lines


def test_the_longest_line_comes_first_and_those_without_a_job_are_apart() -> None:
    short, empty, longest = lines(3)

    found = parked({short: 1, empty: 0, longest: 2})

    assert found.lines == ((longest, Counted(2)), (short, Counted(1)))
    assert (found.empty, found.all_lines, found.total) == ((empty,), True, Counted(3))


@pytest.mark.parametrize("more", [0, 1])
def test_a_count_of_the_parked_jobs_reads_a_bounded_number_of_lines(more: int) -> None:
    found = parked(dict.fromkeys(lines(MOST_LINES + more), 1))

    assert len(found.lines) == MOST_LINES == 50
    assert found.all_lines is (more == 0)
    assert found.total == Counted(MOST_LINES, exact=more == 0)


@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        (0, Counted(0)),
        (999, Counted(999)),
        (1000, Counted(1000)),
        (1001, Counted(1000, exact=False)),
    ],
)
@pytest.mark.parametrize("page", [300, 500, 10_000])
def test_a_line_is_counted_up_to_a_bound(entries: int, expected: Counted, page: int) -> None:
    (line,) = lines(1)
    index = Index({line_partition(line): entries}, page=page)

    assert counts(index).in_line(line) == expected
    assert index.read[line_partition(line)] == expected.number
    assert MOST_COUNTED == 1000


@pytest.mark.parametrize("state", [State.SCHEDULED, State.DEAD])
def test_the_jobs_of_a_state_are_those_of_all_its_partitions(state: State) -> None:
    partitions = [attention_partition(state, shard) for shard in range(LARGEST_INDEX_SHARDS)]
    index = Index({partitions[0]: 2, partitions[-1]: 3})

    assert counts(index).jobs(state) == Counted(5)
    assert counts(Index(index.entries)).jobs(state, most=2) == Counted(4, exact=False)
    assert sorted(index.calls) == sorted(partitions)


def test_the_owed_work_is_that_of_all_its_partitions() -> None:
    index = Index(dict.fromkeys(owed_partitions(), 2))
    assert counts(index).owed() == Counted(2 * len(list(owed_partitions())))


def test_the_newest_jobs_are_those_of_all_partitions_by_their_time() -> None:
    first, second = (attention_partition(State.DEAD, shard) for shard in range(2))
    index = Index({first: 3, second: 1500})

    found = counts(index).newest(State.DEAD, most=2)

    assert found.counted == Counted(1003, exact=False)
    assert found.keys == [(second, "1500"), (second, "1499")]
    assert counts(Index({first: 3, second: 2})).newest(State.DEAD, most=1).keys == [(first, "3")]
