"""The composition root: the parts that the functions take, from the settings in their environment.

What most functions do not need is imported where it is built: imports are most of a cold start.
"""

import json
import os
import time
from collections.abc import Collection, Mapping
from datetime import timedelta
from functools import cache, cached_property
from typing import TYPE_CHECKING

from tidemill.application.breakers.breakers import Breakers
from tidemill.application.configuration import CachedConfiguration
from tidemill.application.job_types import JobTypes
from tidemill.application.submission.submit import Admit, Submit
from tidemill.aws import clients
from tidemill.dynamodb.breakers.breaker_item import DynamoBreakers
from tidemill.dynamodb.indexes import Indexes
from tidemill.dynamodb.operations.configuration_item import DynamoConfiguration
from tidemill.dynamodb.payloads import Bucket, DynamoPayloads
from tidemill.names import PAYLOAD_ITEM_BYTES, Env, Lane
from tidemill.parts import Parts
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
    joint_insert_failed,
    strain_changed,
)

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from tidemill.application.admission.foreground import Governor
    from tidemill.application.dispatch.first_messages import FirstMessages
    from tidemill.application.dispatch.publish import Publisher
    from tidemill.application.flows.flows import FlowControl
    from tidemill.application.operations.health import HealthChecks
    from tidemill.application.operations.migration import Migrator
    from tidemill.application.waiting.release import Releaser
    from tidemill.application.waiting.wake import Waker
    from tidemill.aws.secret_keys import RotatingKey
    from tidemill.dynamodb.operations.archive_files import BucketArchive
    from tidemill.dynamodb.submission.joint_inserts import JointInserts
    from tidemill.http.cursors import Cursors


@cache
def parts() -> "FunctionParts":
    """The parts of this execution environment."""
    return FunctionParts()


@cache
def known_job_types() -> JobTypes:
    """Return the types of the sound job files: a broken one stops no other type."""
    job_types = job_type_loader.load_sound(setting(Env.JOB_PACKAGES).split(","))
    job_files_broken(job_types.faults)
    return job_types


class FunctionParts(Parts):
    """Reads a setting when the first part needs it, and raises `SettingError` if it is missing."""

    @cached_property
    def client(self) -> "DynamoDBClient":
        client = clients.dynamodb()
        throttled_writes.watch(client, stage=setting(Env.STAGE))
        return client

    @cached_property
    def table(self) -> str:
        return setting(Env.JOBS_TABLE)

    @cached_property
    def retention(self) -> timedelta:
        return timedelta(days=int(setting(Env.RETENTION_DAYS)))

    @cached_property
    def indexes(self) -> Indexes:
        return Indexes(listed=bool(setting(Env.LISTING)), shards=int(setting(Env.INDEX_SHARDS)))

    @cached_property
    def job_types(self) -> JobTypes:
        return known_job_types()

    def bucket(self) -> Bucket:
        return Bucket(clients.s3(), setting(Env.FILES_BUCKET))

    @cached_property
    def payloads_alone(self) -> DynamoPayloads:
        return self._payloads_alone(
            largest_item_bytes=int(os.environ.get(Env.PAYLOAD_ITEM_BYTES) or PAYLOAD_ITEM_BYTES),
            compresses=os.environ.get(Env.COMPRESS_PAYLOADS) == "true",
        )

    @cached_property
    def configuration(self) -> CachedConfiguration:
        record = DynamoConfiguration(self.client, table=self.table)
        place = os.environ.get(Env.APP_CONFIG)
        if not place:
            return CachedConfiguration(record.read, clock=clock.now, failed=configuration_not_read)
        from tidemill.powertools import app_config

        copy = app_config.over(record, place=place, table=self.table)
        return CachedConfiguration(
            copy.read, clock=clock.now, failed=configuration_not_read, lasts=app_config.POLL_INTERVAL
        )

    @cached_property
    def submit(self) -> Submit:
        """For tick and for workers: the jobs that they make are accepted also while they are paused."""
        return self._submit(insert_once=idempotency.insert_once)

    @cached_property
    def api_submit(self) -> Submit:
        """For callers over HTTP."""
        from tidemill.application.admission.shed_submissions import shed_or_defer

        paused, over_quota = self.pause_admission, self.quota_admission
        shed = shed_or_defer(
            known_job_types(), self.configuration.current, clock.now, draw=random_draw.draw, governor=self.governor
        )
        return self._submit(lambda job: over_quota(shed(paused(job))), idempotency.insert_once)

    @cached_property
    def pause_admission(self) -> Admit:
        """For what callers over HTTP submit in any way."""
        from tidemill.application.admission.paused_submissions import refuse_paused

        return refuse_paused(self.configuration.current, clock.now)

    @cached_property
    def quota_admission(self) -> Admit:
        """Return the one quota admission of the execution environment, which holds its count."""
        from tidemill.application.admission.quota_admission import QuotaCounter, refuse_over_quota
        from tidemill.dynamodb.admission.quota_items import DynamoSubmissionCounts

        counts = DynamoSubmissionCounts(self.client, table=self.table, new_token=ids.new_token)
        canary = os.environ.get(Env.CANARY)
        return refuse_over_quota(self.configuration.current, QuotaCounter(counts), clock.now, exempt=canary)

    @cached_property
    def insert_together(self) -> "JointInserts":
        from tidemill.dynamodb.submission.joint_inserts import JointInserts

        return JointInserts(self.client, table=self.table, indexes=self.indexes, failed=joint_insert_failed)

    @cached_property
    def health(self) -> "HealthChecks":
        from tidemill.application.operations.health import HealthChecks
        from tidemill.dynamodb.operations import canary_marks

        return HealthChecks(
            canaries=lambda: canary_marks.submitted(self.client, table=self.table),
            lanes=tuple(Lane) if os.environ.get(Env.CANARY) else (),
            broken_job_files=len(known_job_types().faults),
            clock=clock.now,
        )

    @cached_property
    def governor(self) -> "Governor | None":
        """None in a stage without a target."""
        if not os.environ.get(Env.FOREGROUND_TARGET):
            return None
        from tidemill.application.admission.foreground import Governor
        from tidemill.dynamodb.admission.strain_item import DynamoGovernor

        return Governor(
            DynamoGovernor(self.client, table=self.table),
            clock=clock.now,
            configuration=self.configuration.current,
            changed=strain_changed,
        )

    @cached_property
    def api_flow_growth(self) -> "FlowControl":
        """Build the `flow_growth` of the HTTP API, with its admission."""
        return self._flow_control(self._flow_parts(self.submit), [self.pause_admission, self.quota_admission])

    @cached_property
    def archive_files(self) -> "BucketArchive":
        from tidemill.dynamodb.operations.archive_files import BucketArchive

        return BucketArchive(clients.s3(), bucket=setting(Env.ARCHIVE_BUCKET))

    @cached_property
    def lane_urls(self) -> Mapping[Lane, LaneUrls]:
        return {Lane(name): LaneUrls(**urls) for name, urls in json.loads(setting(Env.LANES)).items()}

    @property
    def epoch(self) -> int:
        """Return the epoch of the jobs table, and of all messages about its jobs."""
        return int(os.environ.get(Env.EPOCH) or 0)

    @cached_property
    def lanes(self) -> SqsLanes:
        return SqsLanes(clients.sqs(), self.lane_urls, epoch=self.epoch)

    def _first_message_lanes(self) -> Collection[Lane]:
        hinted = os.environ.get(Env.FIRST_MESSAGE_LANES)
        return [lane for lane in self.lane_urls if lane in hinted.split(",")] if hinted else ()

    @cached_property
    def first_messages(self) -> "FirstMessages | None":
        """For callers over HTTP and workers; None where no lane of the function has them."""
        if not (of := self._first_message_lanes()):
            return None
        from tidemill.application.dispatch.first_messages import FirstMessages

        hasty = SqsLanes(clients.sqs_hints(), self.lane_urls, epoch=self.epoch)
        return FirstMessages(hasty, of=of, clock=clock.now, configuration=self.configuration.current)

    @cached_property
    def publisher(self) -> "Publisher":
        from tidemill.application.features import publisher_features

        return publisher_features.publisher(
            store=self.store,
            payloads=self.payloads_alone,
            lanes=self.lanes,
            owed=self.owed_work,
            clock=clock.now,
            configuration=self.configuration.current,
            first_message_lanes=self._first_message_lanes(),
            flows=lambda: self.flow_advance,
        )

    @cached_property
    def breakers(self) -> Breakers:
        return Breakers(
            DynamoBreakers(self.client, table=self.table),
            clock=clock.now,
            pause=time.sleep,
            configuration=self.configuration.current,
            moved=breaker_moved,
        )

    @cached_property
    def releaser(self) -> "Releaser":
        """It imports the job types only if a line waits for one."""
        from tidemill.application.waiting.release import Releaser

        return Releaser(
            store=self.store,
            limits=self.limits,
            clock=clock.now,
            configuration=self.configuration.current,
            lacks_type=lambda name: known_job_types().lacks(name),
            breakers=self.breakers,
        )

    @cached_property
    def waker(self) -> "Waker":
        from tidemill.application.waiting.wake import Waker

        return Waker(store=self.store, clock=clock.now, pause=time.sleep)

    @cached_property
    def _cursor_key(self) -> "RotatingKey":
        from tidemill.aws.secret_keys import RotatingKey, key_versions

        return RotatingKey(lambda: key_versions(setting(Env.CURSOR_KEY_SECRET)), clock=clock.steady)

    def cursors(self, *, newer: bool = False) -> "Cursors":
        """Fetches the key of cursors, so call it only for a request that needs a cursor.

        With `newer`, it looks for a key that has replaced the one that this process knows.
        """
        from tidemill.http.cursors import Cursors

        return Cursors(*self._cursor_key.versions(newer=newer))

    def migrator(self, *, rate: int, read_units: int) -> "Migrator":
        """For one run of a migration. `rate` is the most jobs per second, and `read_units` those of the scan."""
        from tidemill.application.operations.migration import Migrator

        return Migrator(
            store=self.store,
            payloads=self.payloads,
            scan=self.job_scan,
            reads=self.pace(read_units),
            jobs=self.pace(rate),
            job_types=known_job_types(),
            clock=clock.now,
        )

    def telemetry(self) -> Telemetry:
        """A new one for each invocation."""
        return Telemetry.here()
