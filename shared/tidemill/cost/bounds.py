"""How many jobs a second each part of a stage can take: the capacity model. Pure arithmetic over AWS's quotas."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from tidemill.cost import durations, measured
from tidemill.cost.aws_quotas import (
    ACCOUNT_API_RATE,
    ACCOUNT_CONCURRENCY,
    MAPPING_BEGINS_WITH,
    MAPPING_CONCURRENCY,
    MAPPING_RAMP_PER_MINUTE,
    MESSAGES_IN_FLIGHT,
    NEW_TABLE_WRITE_UNITS,
    PARTITION_WRITE_UNITS,
    TABLE_WRITE_UNITS,
)
from tidemill.cost.job_usage import of_one_job
from tidemill.cost.profile import Profile
from tidemill.cost.stage_limits import StageLimits
from tidemill.names import LARGEST_INDEX_SHARDS

#: Records of a batch of the publisher.
STREAM_BATCH: Final = 100


class Change(StrEnum):
    """Who can raise a bound."""

    SETTING = "setting"
    #: A request to AWS.
    QUOTA = "quota"
    #: Other keys in the app, or another design of Tidemill.
    DESIGN = "design"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    name: str
    jobs_per_second: float
    #: The figure that binds, with its unit.
    figure: str
    change: Change
    #: How to raise it.
    remedy: str


def bounds(profile: Profile, limits: StageLimits) -> Sequence[Bound]:
    """The lowest first. All jobs belong to one tenant and one lane, which is the worst case of both."""
    return sorted(_bounds(profile, limits), key=lambda bound: bound.jobs_per_second)


def workers(profile: Profile, jobs_per_second: float) -> float:
    """Concurrent invocations of the worker."""
    return jobs_per_second * profile.attempts * durations.run_seconds(profile) / profile.batch


def ramp_minutes(concurrency: float) -> float:
    """Until the mapping of an idle queue has so many, if messages wait."""
    return max(0.0, (concurrency - MAPPING_BEGINS_WITH) / MAPPING_RAMP_PER_MINUTE)


def publisher_share(profile: Profile, limits: StageLimits) -> float:
    """The part of its time that the publisher of a shard needs while the shard's partition takes all it can.

    A shard has the changes of a partition, so the shards grow with the table. Below 1, the stream binds nothing.
    """
    jobs_per_second = PARTITION_WRITE_UNITS / _table_units(profile)
    records_per_second = limits.parallelization * STREAM_BATCH / durations.publication_seconds(STREAM_BATCH)
    return jobs_per_second * profile.attempts / records_per_second


def _bounds(profile: Profile, limits: StageLimits) -> Iterator[Bound]:
    yield from _api(profile, limits)
    yield from _lambda(profile, limits)
    yield from _table(profile, limits)
    if profile.limit:
        yield Bound(
            name="one limit key",
            jobs_per_second=PARTITION_WRITE_UNITS / (measured.LIMIT_WRITE_UNITS * profile.attempts),
            figure=f"{PARTITION_WRITE_UNITS:,} writes/s of an item",
            change=Change.DESIGN,
            remedy="more keys: a key is one item",
        )
    if profile.group:
        yield Bound(
            name="one group",
            jobs_per_second=1 / (durations.turn_seconds(profile) * profile.attempts),
            figure=f"{durations.turn_seconds(profile) * 1000:.0f} ms a turn",
            change=Change.DESIGN,
            remedy="more groups: the jobs of a group run one by one",
        )


def _api(profile: Profile, limits: StageLimits) -> Iterator[Bound]:
    if not profile.per_request:
        return
    yield Bound(
        name="API of the stage",
        jobs_per_second=limits.api_rate * profile.per_request,
        figure=f"{limits.api_rate:,} requests/s",
        change=Change.SETTING,
        remedy="api_rate and api_burst, or POST /jobs/batch",
    )
    yield Bound(
        name="API Gateway of the account",
        jobs_per_second=ACCOUNT_API_RATE * profile.per_request,
        figure=f"{ACCOUNT_API_RATE:,} requests/s; 2,500 in small regions",
        change=Change.QUOTA,
        remedy="the throttle quota, POST /jobs/batch, or submit from Python",
    )


def _lambda(profile: Profile, limits: StageLimits) -> Iterator[Bound]:
    run_seconds = workers(profile, 1)
    yield Bound(
        name="workers of a lane",
        jobs_per_second=limits.max_concurrency / run_seconds,
        figure=f"max_concurrency {limits.max_concurrency:,}",
        change=Change.SETTING,
        remedy="max_concurrency in stacks/stages.py, up to 1,000",
    )
    yield Bound(
        name="mapping of a lane",
        jobs_per_second=MAPPING_CONCURRENCY / run_seconds,
        figure=f"{MAPPING_CONCURRENCY:,} concurrent batches",
        change=Change.DESIGN,
        remedy="other lanes for some types; several queues for a lane do not exist",
    )
    seconds = run_seconds + durations.publication_seconds(profile.batch) * profile.attempts / profile.batch
    if profile.per_request:
        seconds += durations.submission_seconds(profile) / profile.per_request
    yield Bound(
        name="Lambda of the account",
        jobs_per_second=ACCOUNT_CONCURRENCY / seconds,
        figure=f"{ACCOUNT_CONCURRENCY:,} concurrent executions",
        change=Change.QUOTA,
        remedy="the quota of concurrent executions",
    )
    yield Bound(
        name="messages in flight",
        jobs_per_second=MESSAGES_IN_FLIGHT / (profile.attempts * durations.run_seconds(profile)),
        figure=f"{MESSAGES_IN_FLIGHT:,} of a queue",
        change=Change.QUOTA,
        remedy="the quota of the queue",
    )


def _table(profile: Profile, limits: StageLimits) -> Iterator[Bound]:
    # An index has the same quota for itself, and fewer writes.
    units = _table_units(profile)
    warm_units = max(NEW_TABLE_WRITE_UNITS, limits.warm_write_units)
    yield Bound(
        name="new table",
        jobs_per_second=warm_units / units,
        figure=f"{warm_units:,} write units/s",
        change=Change.SETTING,
        remedy="warm_write_units, or double the load each 30 minutes at most",
    )
    yield Bound(
        name="table",
        jobs_per_second=TABLE_WRITE_UNITS / units,
        figure=f"{TABLE_WRITE_UNITS:,} write units/s",
        change=Change.QUOTA,
        remedy="the table-level write quota",
    )
    if not profile.listing:
        return
    if limits.index_shards < LARGEST_INDEX_SHARDS:
        yield _listing(limits.index_shards, Change.SETTING, f"index_shards, up to {LARGEST_INDEX_SHARDS}")
    yield _listing(LARGEST_INDEX_SHARDS, Change.DESIGN, "several tenants, or listing=off")


def _listing(shards: int, change: Change, remedy: str) -> Bound:
    return Bound(
        name="listing of one tenant",
        jobs_per_second=shards * PARTITION_WRITE_UNITS,
        figure=f"{shards} partitions of {PARTITION_WRITE_UNITS:,} writes/s",
        change=change,
        remedy=remedy,
    )


def _table_units(profile: Profile) -> float:
    """Without those of the index, which has partitions of its own."""
    return of_one_job(profile).write_units - profile.listing
