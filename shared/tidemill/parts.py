"""`Parts`: all that works on the jobs table of one installation, each part built on first use and kept.

Functions, clients and the command line say in a subclass which table that is, and take the parts that they need. The
modules of parts that only some of them need are imported when the part is built: imports are most of a cold start.
"""

import time
from datetime import timedelta
from functools import cache, cached_property
from typing import TYPE_CHECKING

from tidemill.application.dispatch.owing_payloads import OwingPayloads
from tidemill.application.features import submit_features
from tidemill.application.job_types import JobTypes
from tidemill.application.submission.submit import Admit, InsertOnce, Submit, admit_all, insert_directly
from tidemill.aws import clients
from tidemill.dynamodb.indexes import Indexes
from tidemill.dynamodb.job_store import DynamoJobStore
from tidemill.dynamodb.limits.limits import DynamoLimits
from tidemill.dynamodb.payloads import Bucket, DynamoPayloads
from tidemill.names import PAYLOAD_ITEM_BYTES, Lane
from tidemill.system import clock, ids, random_draw

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from mypy_boto3_dynamodb import DynamoDBClient

    from tidemill.application.batches.batch_members import BatchMembers
    from tidemill.application.control.control import Control
    from tidemill.application.corrections.superseding import Superseder
    from tidemill.application.corrections.undo import Undoer
    from tidemill.application.debounce.debouncing import Debouncer
    from tidemill.application.dispatch.owed import OwedRunner
    from tidemill.application.events.replay import Replayer
    from tidemill.application.flows.flow_advance import FlowAdvance
    from tidemill.application.flows.flow_graphs import FlowGraphs
    from tidemill.application.flows.flow_look import FlowLook
    from tidemill.application.flows.flow_nodes import FlowParts
    from tidemill.application.flows.flows import FlowControl
    from tidemill.application.operations.reconcile import Reconciler
    from tidemill.application.passes.pace import Pace
    from tidemill.application.passes.table_pass import TablePasses
    from tidemill.dynamodb.batches.batch_pages import DynamoBatchPages
    from tidemill.dynamodb.batches.listed_members import MemberListing
    from tidemill.dynamodb.dispatch.owed_items import DynamoOwedWork
    from tidemill.dynamodb.flows.flow_items import DynamoFlows
    from tidemill.dynamodb.listing import DynamoListing
    from tidemill.dynamodb.passes.job_scan import DynamoJobScan
    from tidemill.sqs.lanes import LaneUrls


class Parts:
    """A subclass gives the first six: `client`, `table`, `retention`, `indexes`, `job_types` and `bucket`."""

    @cached_property
    def client(self) -> "DynamoDBClient":
        raise NotImplementedError

    @cached_property
    def table(self) -> str:
        """The name of the jobs table."""
        raise NotImplementedError

    @cached_property
    def retention(self) -> timedelta:
        """The time for which ended jobs are kept."""
        raise NotImplementedError

    @cached_property
    def indexes(self) -> Indexes:
        raise NotImplementedError

    @cached_property
    def job_types(self) -> JobTypes:
        raise NotImplementedError

    def bucket(self) -> Bucket:
        """The bucket of files. Called for the first large payload, so that one who has none needs no bucket."""
        raise NotImplementedError

    @cached_property
    def store(self) -> DynamoJobStore:
        return DynamoJobStore(self.client, table=self.table, retention=self.retention, indexes=self.indexes)

    @cached_property
    def inserting_store(self) -> DynamoJobStore:
        """The store for those who insert jobs: it knows whether the stage lists jobs."""
        return self.store

    @cached_property
    def payloads_alone(self) -> DynamoPayloads:
        """For publish and the runner of owed work, which see to a failed deletion themselves."""
        return self._payloads_alone()

    def _payloads_alone(
        self, *, largest_item_bytes: int = PAYLOAD_ITEM_BYTES, compresses: bool = False
    ) -> DynamoPayloads:
        return DynamoPayloads(
            self.client,
            table=self.table,
            bucket=self.bucket,
            new_token=ids.new_token,
            largest_item_bytes=largest_item_bytes,
            compresses=compresses,
        )

    @cached_property
    def payloads(self) -> OwingPayloads:
        return OwingPayloads(self.payloads_alone, owed=lambda: self.owed_work, clock=clock.now)

    @cached_property
    def owed_work(self) -> "DynamoOwedWork":
        from tidemill.dynamodb.dispatch.owed_items import DynamoOwedWork

        return DynamoOwedWork(self.client, table=self.table)

    @cached_property
    def limits(self) -> DynamoLimits:
        return DynamoLimits(self.client, table=self.table)

    @cached_property
    def control(self) -> "Control":
        from tidemill.application.control.control import Control

        return Control(store=self.store, clock=clock.now, new_token=ids.new_token)

    @cached_property
    def undoer(self) -> "Undoer":
        from tidemill.application.corrections.undo import Undoer

        return Undoer(store=self.inserting_store, payloads=self.payloads, clock=clock.now, find=self.control.find)

    @cached_property
    def superseder(self) -> "Superseder":
        from tidemill.application.corrections.superseding import Superseder

        return Superseder(store=self.store, payloads=self.payloads, clock=clock.now)

    @cached_property
    def debouncer(self) -> "Debouncer":
        from tidemill.application.debounce.debouncing import Debouncer

        return Debouncer(store=self.store, payloads=self.payloads, clock=clock.now)

    @cached_property
    def submit(self) -> Submit:
        return self._submit()

    def _submit(self, admit: Admit = admit_all, insert_once: InsertOnce = insert_directly) -> Submit:
        return submit_features.submit(
            store=self.store,
            payloads=self.payloads,
            job_types=self.job_types,
            clock=clock.now,
            new_id=ids.new_job_id,
            insert_once=insert_once,
            admit=admit,
            supersede=lambda job: self.superseder.accept(job),  # noqa: PLW0108 - the first such job builds the part
            debounce=lambda job: self.debouncer.accept(job),  # noqa: PLW0108 - as above
        )

    @cached_property
    def batch_pages(self) -> "DynamoBatchPages":
        from tidemill.dynamodb.batches.batch_pages import DynamoBatchPages

        return DynamoBatchPages(self.client, table=self.table)

    @cached_property
    def batch_members(self) -> "BatchMembers":
        from tidemill.application.batches.batch_members import BatchMembers

        return BatchMembers(store=self.store, batches=self.batch_pages, clock=clock.now, new_token=ids.new_token)

    @cached_property
    def listing(self) -> "DynamoListing":
        from tidemill.dynamodb.listing import DynamoListing

        return DynamoListing(self.client, table=self.table, read=self.store.get_many)

    @cached_property
    def member_listing(self) -> "MemberListing":
        from tidemill.dynamodb.batches.listed_members import MemberListing

        return MemberListing(self.batch_pages, read=self.store.get_many)

    @cached_property
    def flow_items(self) -> "DynamoFlows":
        from tidemill.dynamodb.flows.flow_items import DynamoFlows

        return DynamoFlows(self.client, table=self.table)

    @cached_property
    def flow_graphs(self) -> "FlowGraphs":
        from tidemill.application.flows.flow_graphs import FlowGraphs

        return FlowGraphs(store=self.flow_items, payloads=self.payloads)

    @cached_property
    def node_parts(self) -> "FlowParts":
        """For the nodes of flows that were accepted: their types were checked then."""
        store, types = self.inserting_store, JobTypes({})
        submit = submit_features.submit(
            store=store, payloads=self.payloads, job_types=types, clock=clock.now, new_id=ids.new_job_id
        )
        return self._flow_parts(submit)

    def _flow_parts(self, submit: Submit) -> "FlowParts":
        from tidemill.application.flows.flow_nodes import FlowParts

        return FlowParts(
            flows=self.flow_items, jobs=self.inserting_store, submit=submit, graphs=self.flow_graphs, clock=clock.now
        )

    @cached_property
    def flow_advance(self) -> "FlowAdvance":
        from tidemill.application.flows.flow_advance import FlowAdvance

        return FlowAdvance(self.node_parts)

    @cached_property
    def owed_runner(self) -> "OwedRunner":
        from tidemill.application.dispatch.owed import OwedRunner

        def ask(tenant: str, flow_id: str) -> None:
            self.flow_advance.ask_to_look(tenant, flow_id)

        alone = self.payloads_alone
        return OwedRunner(owed=self.owed_work, store=self.store, payloads=alone, clock=clock.now, ask=ask)

    @cached_property
    def flow_look(self) -> "FlowLook":
        from tidemill.application.flows.flow_look import FlowLook

        return FlowLook(self.node_parts)

    @cached_property
    def flow_control(self) -> "FlowControl":
        return self._flow_control(self.node_parts)

    @cached_property
    def flow_growth(self) -> "FlowControl":
        """For the addition of nodes, whose types it checks."""
        return self._flow_control(self._flow_parts(self.submit))

    def _flow_control(self, parts: "FlowParts", admits: "Sequence[Admit]" = ()) -> "FlowControl":
        from tidemill.application.flows.flows import FlowControl

        return FlowControl(self.control, parts, pause_below=random_draw.pause_below, admits=admits)

    @cached_property
    def job_scan(self) -> "DynamoJobScan":
        from tidemill.dynamodb.passes.job_scan import DynamoJobScan

        return DynamoJobScan(self.client, table=self.table)

    def pace(self, per_second: float) -> "Pace":
        """A new one, which begins with no debt. For calls of any kind, or read units."""
        from tidemill.application.passes.pace import Pace

        return Pace(per_second, clock=clock.steady, pause=time.sleep)

    def table_passes(self, read_units: float) -> "TablePasses":
        """New ones. `read_units` are those that the passes may take per second."""
        from tidemill.application.passes.table_pass import TablePasses
        from tidemill.dynamodb.passes.pass_store import DynamoPasses
        from tidemill.dynamodb.passes.table_scan import DynamoTableScan

        return TablePasses(
            store=DynamoPasses(self.client, table=self.table, new_token=ids.new_token),
            scan=DynamoTableScan(self.client, table=self.table),
            pace=self.pace(read_units),
            clock=clock.now,
            new_token=ids.new_token,
            draw=random_draw.draw,
        )

    def reconciler(self, limit: timedelta, urls_of: "Callable[[Lane], LaneUrls | None]") -> "Reconciler":
        """A new one. `limit` is the time that a job may be overdue. It reads the delay of each lane once."""
        from tidemill.application.operations.reconcile import Reconciler
        from tidemill.application.passes.pace import MOST_WRITES_PER_SECOND
        from tidemill.sqs.queue_depth import delay

        @cache
        def lane_delay(lane: Lane) -> timedelta:
            urls = urls_of(lane)
            if urls is None:
                return timedelta(0)  # no job waits on a lane that is not deployed
            return delay(clients.sqs(), clients.cloudwatch(), urls.queue, now=clock.now())

        writes = self.pace(MOST_WRITES_PER_SECOND)
        return Reconciler(store=self.store, clock=clock.now, limit=limit, lane_delay=lane_delay, writes=writes)

    @property
    def keeps_listing(self) -> bool:
        """Whether the stage keeps the listing index."""
        return self.indexes.listed

    def replayer(self, *, tenant: str | None, rate: int, read_units: int, submit: Submit | None = None) -> "Replayer":
        """For one run of a replay. `rate` is the most events per second, and `read_units` those of a scan.

        Without `submit`, it submits as the other parts do.
        """
        from tidemill.application.events.replay import Replayer
        from tidemill.application.events.scanned_events import ScannedEvents
        from tidemill.dynamodb.events.listed_events import ListedEvents

        events: ListedEvents | ScannedEvents
        if tenant is not None and self.keeps_listing:
            events = ListedEvents(self.client, table=self.table, tenant=tenant, read=self.store.get_many)
        else:
            events = ScannedEvents(self.job_scan, self.pace(read_units))
        return Replayer(
            events=events,
            store=self.store,
            payloads=self.payloads,
            submit=submit or self.submit,
            jobs=self.pace(rate),
            clock=clock.now,
            new_token=ids.new_token,
        )
