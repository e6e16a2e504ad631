"""A model of the index partitions that take the listing of one tenant: hot partitions, and how DynamoDB splits them.

The entries of a tenant have one key for each index shard. A key lies in one partition, and a partition may have several
keys. Where a key lies follows from a hash that AWS does not publish, so the model draws it.
"""

from dataclasses import dataclass
from math import fsum
from random import Random
from typing import Final

from tidemill.cost.aws_quotas import PARTITION_WRITE_UNITS

#: How long a partition is at its bound until DynamoDB has split it. An assumption: AWS says that this needs sustained
#: traffic, and names no time.
#: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/throttling-key-range-limit-exceeded-mitigation.html
SPLIT_AFTER_SECONDS: Final = 600.0


@dataclass(slots=True)
class _Partition:
    #: Numbers of its keys, in the order of their hashes.
    keys: list[int]
    #: Seconds at its bound, without a break.
    hot: float = 0.0


class IndexModel:
    """Refuses what a partition cannot take. Callers keep the refused jobs, each for its own key, and repeat them."""

    def __init__(self, *, shards: int, partitions: int, seed: int = 0, bound: float = PARTITION_WRITE_UNITS) -> None:
        """`bound`: entries a second that a partition takes."""
        random = Random(seed)  # noqa: S311 - a model
        hashes = sorted(random.random() for _ in range(shards))
        places = [int(each * partitions) for each in hashes]
        self._partitions = [
            _Partition([key for key, place in enumerate(places) if place == number]) for number in sorted({*places})
        ]
        self._shards, self._bound = shards, bound
        #: The jobs of each key that were offered and accepted so far.
        self.offered = [0.0] * shards
        self.accepted = [0.0] * shards

    @property
    def used_partitions(self) -> int:
        return len(self._partitions)

    @property
    def waiting(self) -> float:
        return fsum(self.offered) - fsum(self.accepted)

    def offer(self, jobs: float) -> None:
        """These jobs are submitted. Ids spread the jobs of a tenant evenly over its keys."""
        self.offered = [each + jobs / self._shards for each in self.offered]

    def accept(self, most: float, seconds: float) -> float:
        """The number of jobs that the index takes within `seconds`, of those that are offered; `most` in all."""
        bound = self._bound * seconds
        backlog = [offered - accepted for offered, accepted in zip(self.offered, self.accepted, strict=True)]
        taken = [0.0] * self._shards
        for partition in self._partitions:
            waiting = fsum(backlog[key] for key in partition.keys)
            share = min(1.0, bound / waiting) if waiting else 0.0
            for key in partition.keys:
                taken[key] = share * backlog[key]
            # Refused by the rest of the stage, a job does not heat its partition.
            partition.hot = partition.hot + seconds if waiting > bound and most >= bound else 0.0
        total = fsum(taken)
        share = min(1.0, most / total) if total else 0.0
        self.accepted = [accepted + share * each for accepted, each in zip(self.accepted, taken, strict=True)]
        for partition in [each for each in self._partitions if each.hot >= SPLIT_AFTER_SECONDS]:
            self._split(partition)
        return share * total

    def _split(self, hot: _Partition) -> None:
        """Between two keys: within the entries of one, whose sort key only grows, a split does not help.

        https://aws.amazon.com/blogs/database/part-2-scaling-dynamodb-how-partitions-hot-keys-and-split-for-heat-impact-performance/
        """
        hot.hot = 0.0
        if len(hot.keys) > 1:
            middle = len(hot.keys) // 2
            self._partitions.append(_Partition(hot.keys[middle:]))
            del hot.keys[middle:]
