"""A model of one lane over time: jobs flow from callers through API, table, stream and queue to the workers.

Jobs are an amount, not single ones: the model has bounds and backlogs, and no chance but the places of index keys. The
bounds are AWS's figures and the settings of a stage. It leaves out cold starts, other load in the account, and that a
mapping has fewer batches again once no messages wait.
"""

import math
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from demo.figures.index_model import IndexModel
from tidemill.cost import aws_quotas, durations
from tidemill.cost.bounds import STREAM_BATCH
from tidemill.cost.job_usage import of_one_job
from tidemill.cost.profile import Profile
from tidemill.cost.stage_limits import StageLimits

STEP_SECONDS: Final = 0.25
#: DynamoDB bounds the growth of a table by the traffic of whole minutes before.
_MINUTE: Final = 60.0
#: Within this amount of jobs, a backlog is gone.
_NONE: Final = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """The bounds of a lane and what a job uses of them. Jobs, if no other unit is named."""

    #: What the API takes each second, and at once after a pause.
    api_rate: float = math.inf
    api_burst: float = math.inf
    #: Invocations at a time that one job a second needs.
    submit_seconds: float = 0.0
    publish_seconds: float = 0.0
    #: From the write of a job to its message on the lane.
    hop_seconds: float = 0.0
    #: What the publisher of one shard of the stream sends each second.
    shard_rate: float = math.inf
    #: The messages of one batch of a worker.
    batch: int = 10
    batch_seconds: float
    #: Batches at a time.
    begins_with: float = aws_quotas.MAPPING_BEGINS_WITH
    ramp_per_second: float = aws_quotas.MAPPING_RAMP_PER_MINUTE / _MINUTE
    max_concurrency: float
    account_concurrency: float = aws_quotas.ACCOUNT_CONCURRENCY
    #: Write units of the table, without its indexes.
    insert_units: float = 0.0
    run_units: float = 0.0
    warm_units: float = aws_quotas.NEW_TABLE_WRITE_UNITS


def capacity_of(profile: Profile, limits: StageLimits, *, api_burst: int) -> Capacity:
    """Capacity of a stage with a new table, or with the warm throughput that its settings name."""
    units = of_one_job(profile).write_units - profile.listing
    return Capacity(
        api_rate=min(limits.api_rate, aws_quotas.ACCOUNT_API_RATE) * profile.per_request,
        api_burst=api_burst * profile.per_request,
        submit_seconds=durations.submission_seconds(profile) / profile.per_request,
        publish_seconds=durations.publication_seconds(profile.batch) / profile.batch,
        # On average half of the time between two reads of the shard.
        hop_seconds=0.5 / aws_quotas.STREAM_POLLS_PER_SECOND + durations.publication_seconds(profile.batch),
        shard_rate=limits.parallelization * STREAM_BATCH / durations.publication_seconds(STREAM_BATCH),
        batch=profile.batch,
        batch_seconds=durations.run_seconds(profile),
        max_concurrency=min(limits.max_concurrency, aws_quotas.MESSAGES_IN_FLIGHT / profile.batch),
        insert_units=1.0,
        run_units=units - 1.0,
        warm_units=max(limits.warm_write_units, aws_quotas.NEW_TABLE_WRITE_UNITS),
    )


class OnDemandTable:
    """Takes its warm throughput, or twice the peak that it had half an hour ago or before: what AWS promises."""

    def __init__(self, warm_units: float) -> None:
        self.units_per_second = warm_units
        self._minutes: deque[tuple[float, float]] = deque()
        self._minute, self._used = 0.0, 0.0

    def use(self, units: float, now: float) -> None:
        if now >= self._minute + _MINUTE:
            self._minutes.append((now, self._used / _MINUTE))
            self._minute, self._used = now, 0.0
            while self._minutes and self._minutes[0][0] <= now - aws_quotas.PEAK_SECONDS:
                _, peak = self._minutes.popleft()
                grown = min(aws_quotas.PEAK_FACTOR * peak, aws_quotas.TABLE_WRITE_UNITS)
                self.units_per_second = max(self.units_per_second, grown)
        self._used += units


class Environments:
    """The environments of a function: Lambda creates 1,000 in ten seconds at most."""

    def __init__(self) -> None:
        self._most_at_once = 10.0 * aws_quotas.ENVIRONMENTS_PER_SECOND
        self._free, self._number = self._most_at_once, 0.0

    def need(self, wanted: float, seconds: float) -> float:
        """How many of them the function has."""
        self._free = min(self._free + aws_quotas.ENVIRONMENTS_PER_SECOND * seconds, self._most_at_once)
        created = min(max(wanted - self._number, 0.0), self._free)
        self._free -= created
        self._number += created
        return min(wanted, self._number)


@dataclass(slots=True)
class Played:
    """One run of the model. Jobs are totals since its beginning, one of each list for each step."""

    at: list[float] = field(default_factory=list)
    #: By the key of the index.
    offered: list[Sequence[float]] = field(default_factory=list)
    accepted: list[Sequence[float]] = field(default_factory=list)
    sent: list[float] = field(default_factory=list)
    started: list[float] = field(default_factory=list)
    #: Batches at a time.
    concurrency: list[float] = field(default_factory=list)

    def at_callers(self, step: int) -> float:
        """Jobs that the stage has refused so far. Their callers repeat them."""
        return math.fsum(self.offered[step]) - math.fsum(self.accepted[step])

    def in_stage(self, step: int) -> float:
        """Jobs that wait on their way to a worker."""
        return math.fsum(self.accepted[step]) - self.started[step]

    @property
    def drained_at(self) -> float | None:
        """When the last backlog was gone, or None."""
        open_ = [step for step in range(len(self.at)) if self.at_callers(step) + self.in_stage(step) > self._flow(step)]
        last = open_[-1] + 1 if open_ else 0
        return self.at[last] if last < len(self.at) else None

    def _flow(self, step: int) -> float:
        """The jobs of the last second: so many are on their way without any backlog."""
        before = bisect_left(self.at, self.at[step] - 1.0)
        return math.fsum(self.offered[step]) - math.fsum(self.offered[before]) + _NONE

    def start_seconds(self, step: int) -> float | None:
        """How long a job that is submitted now waits until it starts, on the key that waits longest. None: too long."""
        accepted = max(self._reached(self.accepted, step, key) for key in range(len(self.offered[step])))
        if accepted == len(self.at):
            return None
        started = bisect_left(self.started, math.fsum(self.accepted[accepted]) - _NONE)
        return self.at[started] - self.at[step] if started < len(self.at) else None

    def _reached(self, totals: Sequence[Sequence[float]], step: int, key: int) -> int:
        wanted = self.offered[step][key] - _NONE / len(self.offered[step])
        return max(bisect_left(totals, wanted, key=lambda each: each[key]), step)


def play(capacity: Capacity, offered: Callable[[float], float], *, seconds: float, index: IndexModel) -> Played:
    """`offered` says how many jobs a second are submitted at a time."""
    played, table = Played(), OnDemandTable(capacity.warm_units)
    submitting, working = Environments(), Environments()
    hop = deque([0.0] * max(1, round(capacity.hop_seconds / STEP_SECONDS)))
    queue, started, tokens, mapping = 0.0, 0.0, capacity.api_burst, capacity.begins_with
    stream, sent, others = 0.0, 0.0, 0.0
    for step in range(round(seconds / STEP_SECONDS)):
        now = step * STEP_SECONDS
        units = table.units_per_second * STEP_SECONDS
        index.offer(offered(now) * STEP_SECONDS)
        tokens = min(
            tokens + capacity.api_rate * STEP_SECONDS, max(capacity.api_burst, capacity.api_rate * STEP_SECONDS)
        )
        # Runs write first: the model lets a table that is at its bound refuse submissions.
        batches = working.need(min(mapping, capacity.account_concurrency - others), STEP_SECONDS)
        ready = batches * capacity.batch / capacity.batch_seconds * STEP_SECONDS
        run = min(queue, ready, units / capacity.run_units if capacity.run_units else math.inf)
        units -= run * capacity.run_units
        waits = queue - run > _NONE
        mapping = min(mapping + waits * capacity.ramp_per_second * STEP_SECONDS, capacity.max_concurrency)
        most = min(tokens, units / capacity.insert_units if capacity.insert_units else math.inf)
        if capacity.submit_seconds:
            wanted = min(most, index.waiting) / STEP_SECONDS * capacity.submit_seconds
            got = submitting.need(min(wanted, capacity.account_concurrency - batches), STEP_SECONDS)
            most = min(most, got * STEP_SECONDS / capacity.submit_seconds)
        accepted = index.accept(most, STEP_SECONDS)
        tokens -= accepted
        hop.append(accepted)
        stream += hop.popleft()
        # A partition has a shard.
        shards = table.units_per_second / aws_quotas.PARTITION_WRITE_UNITS
        arrived = min(stream, shards * capacity.shard_rate * STEP_SECONDS)
        stream -= arrived
        others = (accepted * capacity.submit_seconds + arrived * capacity.publish_seconds) / STEP_SECONDS
        sent, queue, started = sent + arrived, queue + arrived - run, started + run
        table.use(run * capacity.run_units + accepted * capacity.insert_units, now)
        played.at.append(now + STEP_SECONDS)
        played.offered.append(list(index.offered))
        played.accepted.append(list(index.accepted))
        played.sent.append(sent)
        played.started.append(started)
        played.concurrency.append(run / STEP_SECONDS * capacity.batch_seconds / capacity.batch)
    return played
