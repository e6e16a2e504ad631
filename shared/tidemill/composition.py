"""The composition root: reads the environment and builds each object that the functions need, on first use.

What most functions do not need is imported where it is built: imports are most of a cold start.
"""

import json
import os
import time
from collections.abc import Collection, Mapping
from datetime import timedelta
from functools import cache
from typing import TYPE_CHECKING

from tidemill.application.breakers import Breakers
from tidemill.application.configuration import CachedConfiguration
from tidemill.application.control import Control
from tidemill.application.debouncing import Debouncer
from tidemill.application.foreground import Governor
from tidemill.application.job_types import JobTypes
from tidemill.application.owing_payloads import OwingPayloads
from tidemill.application.release import Releaser
from tidemill.application.submit import Admit, Submit, admit_all
from tidemill.application.superseding import Superseder
from tidemill.application.undo import Undoer
from tidemill.aws import clients
from tidemill.dynamodb.breaker_item import DynamoBreakers
from tidemill.dynamodb.configuration_item import DynamoConfiguration
from tidemill.dynamodb.indexes import Indexes
from tidemill.dynamodb.job_store import DynamoJobStore
from tidemill.dynamodb.limits import DynamoLimits
from tidemill.dynamodb.payloads import Bucket, DynamoPayloads
from tidemill.dynamodb.strain_item import DynamoGovernor
from tidemill.names import PAYLOAD_ITEM_BYTES, Env, Lane
from tidemill.powertools import idempotency
from tidemill.settings import setting
from tidemill.sqs.lanes import LaneUrls, SqsLanes
from tidemill.system import clock, ids, job_type_loader, random_draw
from tidemill.telemetry import throttled_writes
from tidemill.telemetry.outcome_log import (
    Telemetry,
    breaker_moved,
    configuration_not_read,
    job_files_broken,
    strain_changed,
)

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from tidemill.application.batch_members import BatchMembers
    from tidemill.application.first_messages import FirstMessages
    from tidemill.application.flow_advance import FlowAdvance
    from tidemill.application.flow_graphs import FlowGraphs
    from tidemill.application.flow_nodes import FlowParts
    from tidemill.application.migration import Migrator
    from tidemill.application.owed import OwedRunner
    from tidemill.application.publish import Publisher
    from tidemill.application.replay import Replayer
    from tidemill.application.wake import Waker
    from tidemill.dynamodb.archive_files import BucketArchive
    from tidemill.dynamodb.flow_items import DynamoFlows
    from tidemill.dynamodb.owed_items import DynamoOwedWork


def indexes() -> Indexes:
    return Indexes(listed=bool(setting(Env.LISTING)), shards=int(setting(Env.INDEX_SHARDS)))


@cache
def dynamodb() -> "DynamoDBClient":
    client = clients.dynamodb()
    throttled_writes.watch(client, stage=setting(Env.STAGE))
    return client


@cache
def store() -> DynamoJobStore:
    return DynamoJobStore(
        dynamodb(),
        table=setting(Env.JOBS_TABLE),
        retention=timedelta(days=int(setting(Env.RETENTION_DAYS))),
        indexes=indexes(),
    )


@cache
def payloads() -> OwingPayloads:
    return OwingPayloads(payloads_alone(), owed=owed_work, clock=clock.now)


@cache
def payloads_alone() -> DynamoPayloads:
    """For publish and the runner of owed work, which see to a failed deletion themselves."""
    return DynamoPayloads(
        dynamodb(),
        table=setting(Env.JOBS_TABLE),
        # Called for the first large payload: a function that handles none needs no bucket.
        bucket=lambda: Bucket(clients.s3(), setting(Env.FILES_BUCKET)),
        new_token=ids.new_token,
        largest_item_bytes=int(os.environ.get(Env.PAYLOAD_ITEM_BYTES) or PAYLOAD_ITEM_BYTES),
        compresses=os.environ.get(Env.COMPRESS_PAYLOADS) == "true",
    )


@cache
def known_job_types() -> JobTypes:
    """Return the types of the sound job files: a broken one stops no other type."""
    job_types = job_type_loader.load_sound(setting(Env.JOB_PACKAGES).split(","))
    job_files_broken(job_types.faults)
    return job_types


@cache
def configuration() -> CachedConfiguration:
    table = setting(Env.JOBS_TABLE)
    record = DynamoConfiguration(dynamodb(), table=table)
    place = os.environ.get(Env.APP_CONFIG)
    if not place:
        return CachedConfiguration(record.read, clock=clock.now, failed=configuration_not_read)
    from tidemill.powertools import app_config

    copy = app_config.over(record, place=place, table=table)
    return CachedConfiguration(
        copy.read, clock=clock.now, failed=configuration_not_read, lasts=app_config.POLL_INTERVAL
    )


@cache
def submit() -> Submit:
    """For tick and for workers: the jobs that they make are accepted also while they are paused."""
    return _submit(admit_all)


@cache
def api_submit() -> Submit:
    """For callers over HTTP."""
    from tidemill.application.shed_submissions import shed_or_defer

    paused, over_quota = pause_admission(), quota_admission()
    current = configuration().current
    shed = shed_or_defer(known_job_types(), current, clock.now, draw=random_draw.draw, governor=governor())
    return _submit(lambda job: over_quota(shed(paused(job))))


@cache
def pause_admission() -> Admit:
    """For what callers over HTTP submit in any way."""
    from tidemill.application.paused_submissions import refuse_paused

    return refuse_paused(configuration().current, clock.now)


@cache
def quota_admission() -> Admit:
    """Return the one quota admission of the execution environment, which holds its count."""
    from tidemill.application.quota_admission import QuotaCounter, refuse_over_quota
    from tidemill.dynamodb.quota_items import DynamoSubmissionCounts

    counts = DynamoSubmissionCounts(dynamodb(), table=setting(Env.JOBS_TABLE), new_token=ids.new_token)
    canary = os.environ.get(Env.CANARY)
    return refuse_over_quota(configuration().current, QuotaCounter(counts), clock.now, exempt=canary)


def _submit(admit: Admit) -> Submit:
    return Submit(
        store=store(),
        payloads=payloads(),
        job_types=known_job_types(),
        clock=clock.now,
        new_id=ids.new_job_id,
        insert_once=idempotency.insert_once,
        admit=admit,
        supersede=superseder().accept,
        debounce=debouncer().accept,
    )


@cache
def governor() -> Governor | None:
    """None in a stage without a target."""
    if not os.environ.get(Env.FOREGROUND_TARGET):
        return None
    return Governor(
        DynamoGovernor(dynamodb(), table=setting(Env.JOBS_TABLE)),
        clock=clock.now,
        configuration=configuration().current,
        changed=strain_changed,
    )


@cache
def control() -> Control:
    return Control(store=store(), clock=clock.now, new_token=ids.new_token)


@cache
def batch_members() -> "BatchMembers":
    from tidemill.application.batch_members import BatchMembers
    from tidemill.dynamodb.batch_pages import DynamoBatchPages

    batches = DynamoBatchPages(dynamodb(), table=setting(Env.JOBS_TABLE))
    return BatchMembers(store=store(), batches=batches, clock=clock.now, new_token=ids.new_token)


@cache
def flow_items() -> "DynamoFlows":
    from tidemill.dynamodb.flow_items import DynamoFlows

    return DynamoFlows(dynamodb(), table=setting(Env.JOBS_TABLE))


@cache
def flow_graphs() -> "FlowGraphs":
    from tidemill.application.flow_graphs import FlowGraphs

    return FlowGraphs(store=flow_items(), payloads=payloads())


def flow_parts(submit: Submit) -> "FlowParts":
    from tidemill.application.flow_nodes import FlowParts

    return FlowParts(flows=flow_items(), jobs=store(), submit=submit, graphs=flow_graphs(), clock=clock.now)


def node_submit() -> Submit:
    return Submit(store=store(), payloads=payloads(), job_types=JobTypes({}), clock=clock.now, new_id=ids.new_job_id)


@cache
def flow_advance() -> "FlowAdvance":
    from tidemill.application.flow_advance import FlowAdvance

    return FlowAdvance(flow_parts(node_submit()))


@cache
def superseder() -> Superseder:
    return Superseder(store=store(), payloads=payloads(), clock=clock.now)


@cache
def debouncer() -> Debouncer:
    return Debouncer(store=store(), payloads=payloads(), clock=clock.now)


@cache
def undoer() -> Undoer:
    return Undoer(store=store(), payloads=payloads(), clock=clock.now, find=control().find)


@cache
def archive_files() -> "BucketArchive":
    from tidemill.dynamodb.archive_files import BucketArchive

    return BucketArchive(clients.s3(), bucket=setting(Env.ARCHIVE_BUCKET))


@cache
def lane_urls() -> Mapping[Lane, LaneUrls]:
    return {Lane(name): LaneUrls(**urls) for name, urls in json.loads(setting(Env.LANES)).items()}


def epoch() -> int:
    """Return the epoch of the jobs table, and of all messages about its jobs."""
    return int(os.environ.get(Env.EPOCH) or 0)


@cache
def lanes() -> SqsLanes:
    return SqsLanes(clients.sqs(), lane_urls(), epoch=epoch())


def _first_message_lanes() -> Collection[Lane]:
    hinted = os.environ.get(Env.FIRST_MESSAGE_LANES)
    return [lane for lane in lane_urls() if lane in hinted.split(",")] if hinted else ()


@cache
def first_messages() -> "FirstMessages | None":
    """For callers over HTTP and workers; None where no lane of the function has them."""
    from tidemill.application.first_messages import FirstMessages

    if not (of := _first_message_lanes()):
        return None
    hasty = SqsLanes(clients.sqs_hints(), lane_urls(), epoch=epoch())
    return FirstMessages(hasty, of=of, clock=clock.now, configuration=configuration().current)


@cache
def publisher() -> "Publisher":
    from tidemill.application import publisher_features

    return publisher_features.publisher(
        store=store(),
        payloads=payloads_alone(),
        lanes=lanes(),
        owed=owed_work(),
        clock=clock.now,
        configuration=configuration().current,
        first_message_lanes=_first_message_lanes(),
        flows=flow_advance,
    )


@cache
def owed_work() -> "DynamoOwedWork":
    from tidemill.dynamodb.owed_items import DynamoOwedWork

    return DynamoOwedWork(dynamodb(), table=setting(Env.JOBS_TABLE))


@cache
def owed_runner() -> "OwedRunner":
    from tidemill.application.owed import OwedRunner

    alone, ask = payloads_alone(), flow_advance().ask_to_look
    return OwedRunner(owed=owed_work(), store=store(), payloads=alone, clock=clock.now, ask=ask)


def migrator(*, rate: int, read_units: int) -> "Migrator":
    """For one run of a migration. `rate` is the most jobs per second, and `read_units` those of the scan."""
    from tidemill.application.migration import Migrator
    from tidemill.application.pace import Pace
    from tidemill.dynamodb.job_scan import DynamoJobScan

    return Migrator(
        store=store(),
        payloads=payloads(),
        scan=DynamoJobScan(dynamodb(), table=setting(Env.JOBS_TABLE)),
        reads=Pace(read_units, clock=clock.steady, pause=time.sleep),
        jobs=Pace(rate, clock=clock.steady, pause=time.sleep),
        job_types=known_job_types(),
        clock=clock.now,
    )


def replayer(*, tenant: str | None, rate: int, read_units: int) -> "Replayer":
    """For one run of a replay. `rate` is the most events per second, and `read_units` those of a scan."""
    from tidemill.application.pace import Pace
    from tidemill.application.replay import Replayer
    from tidemill.application.scanned_events import ScannedEvents
    from tidemill.dynamodb.job_scan import DynamoJobScan
    from tidemill.dynamodb.listed_events import ListedEvents

    table = setting(Env.JOBS_TABLE)
    events: ListedEvents | ScannedEvents
    if tenant is not None and indexes().listed:
        events = ListedEvents(dynamodb(), table=table, tenant=tenant, read=store().get_many)
    else:
        scan = DynamoJobScan(dynamodb(), table=table)
        events = ScannedEvents(scan, Pace(read_units, clock=clock.steady, pause=time.sleep))
    return Replayer(
        events=events,
        store=store(),
        payloads=payloads(),
        submit=submit(),
        jobs=Pace(rate, clock=clock.steady, pause=time.sleep),
        clock=clock.now,
        new_token=ids.new_token,
    )


def telemetry() -> Telemetry:
    """A new one for each invocation."""
    return Telemetry.here()


@cache
def limits() -> DynamoLimits:
    return DynamoLimits(dynamodb(), table=setting(Env.JOBS_TABLE))


@cache
def breakers() -> Breakers:
    store = DynamoBreakers(dynamodb(), table=setting(Env.JOBS_TABLE))
    return Breakers(
        store, clock=clock.now, pause=time.sleep, configuration=configuration().current, moved=breaker_moved
    )


@cache
def releaser() -> Releaser:
    """It imports the job types only if a line waits for one."""
    return Releaser(
        store=store(),
        limits=limits(),
        clock=clock.now,
        configuration=configuration().current,
        lacks_type=lambda name: known_job_types().lacks(name),
        breakers=breakers(),
    )


@cache
def waker() -> "Waker":
    from tidemill.application.wake import Waker

    return Waker(store=store(), clock=clock.now, pause=time.sleep)
