"""The deployed Tidemill that the commands work on. Located on first use, with the usual AWS credentials."""

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import cache, cached_property

from tidemill.application.audit import Auditor
from tidemill.application.batch_members import BatchMembers
from tidemill.application.configuration import Configurator
from tidemill.application.control import Control
from tidemill.application.explanation import Facts
from tidemill.application.flow_graphs import FlowGraphs
from tidemill.application.flow_look import FlowLook
from tidemill.application.flow_nodes import FlowParts
from tidemill.application.job_search import JobSearch
from tidemill.application.job_types import JobTypes
from tidemill.application.owed import OwedRunner
from tidemill.application.owing_payloads import OwingPayloads
from tidemill.application.pace import MOST_WRITES_PER_SECOND, Pace
from tidemill.application.purge import Purger
from tidemill.application.reconcile import Reconciler
from tidemill.application.redrive import Redriver
from tidemill.application.submit import Submit
from tidemill.application.table_pass import TablePasses
from tidemill.application.undo import Undoer
from tidemill.aws import clients
from tidemill.aws.clients import AWS_ERRORS, translated
from tidemill.aws.http_client import HttpApi, by_signature, by_token
from tidemill.cli.formatting import visible_lines
from tidemill.cli.output import say
from tidemill.client import Tidemill
from tidemill.domain.errors import TidemillError
from tidemill.domain.states import State
from tidemill.domain.waiting import Cause, Line
from tidemill.dynamodb.attention_counts import AttentionCounts, Counted
from tidemill.dynamodb.audit_items import DynamoAuditLog
from tidemill.dynamodb.batch_pages import DynamoBatchPages
from tidemill.dynamodb.flow_items import DynamoFlows
from tidemill.dynamodb.indexes import Indexes
from tidemill.dynamodb.job_scan import DynamoJobScan
from tidemill.dynamodb.job_store import DynamoJobStore
from tidemill.dynamodb.limits import DynamoLimits
from tidemill.dynamodb.listing import DynamoListing
from tidemill.dynamodb.member_listing import MemberListing
from tidemill.dynamodb.owed_items import DynamoOwedWork
from tidemill.dynamodb.passes import DynamoPasses
from tidemill.dynamodb.payloads import Bucket, DynamoPayloads
from tidemill.dynamodb.table_scan import DynamoTableScan
from tidemill.names import (
    EVENT_PACKAGE,
    INDEX_SHARDS,
    LISTING_INDEX,
    MIGRATION_PACKAGE,
    MIGRATION_TENANT,
    REPLAY_TENANT,
    Lane,
)
from tidemill.operator import alias_moves, deployment, function_versions, held_lines, system_status
from tidemill.operator.configuration_source import configuration_store
from tidemill.operator.deployment import Deployment, FunctionStack
from tidemill.operator.find_job import JobFinder
from tidemill.operator.function_versions import FunctionVersions
from tidemill.operator.held_lines import BreakerStatus
from tidemill.operator.job_facts import JobFacts
from tidemill.operator.job_logs import JobLogs
from tidemill.operator.rollback_plan import Move
from tidemill.operator.system_status import SystemStatus
from tidemill.operator.verified_caller import UNVERIFIED, verified_caller
from tidemill.sqs.dead_letter_queue import SqsDeadLetterQueue
from tidemill.sqs.queue_depth import backlog, delay
from tidemill.system import clock, ids, random_draw

#: A progress bar counts at most so many jobs of each partition of the index: about 1,500 read units.
_MOST_COUNTED = 100_000


@dataclass(frozen=True)
class Installation:
    """The installation that the global options select."""

    stack: str | None = None
    profile: str | None = None
    region: str | None = None

    @cached_property
    def deployment(self) -> Deployment:
        clients.choose(profile=self.profile, region=self.region)
        return deployment.find(clients.cloudformation(), self.stack)

    @cached_property
    def api(self) -> HttpApi:
        found = self.deployment
        token = os.environ.get("TIDEMILL_TOKEN")
        signature = by_signature(clients.credentials(), region=found.region)
        return HttpApi(found.api_url, by_token(token) if token else signature)

    @cached_property
    def caller(self) -> str:
        """Who runs the command, for audit entries. One call, with a warning if the name is not verified."""
        clients.choose(profile=self.profile, region=self.region)
        name = verified_caller(clients.sts())
        if name.startswith(UNVERIFIED):
            say(f"STS did not confirm who you are; the record of this command will name {name}.")
        return name

    @cached_property
    def store(self) -> DynamoJobStore:
        deployment = self.deployment
        return DynamoJobStore(clients.dynamodb(), table=deployment.jobs_table, retention=deployment.retention)

    @cached_property
    def configurator(self) -> Configurator:
        return Configurator(store=configuration_store(self.deployment), clock=clock.now)

    def waiting(self, line: Line) -> Counted:
        """The parked jobs of this line."""
        return AttentionCounts(clients.dynamodb(), table=self.deployment.jobs_table).in_line(line)

    def breakers(self, names: Sequence[str]) -> tuple[BreakerStatus, ...]:
        """Those with these names; all that have a line or are forced without one."""
        client, table = clients.dynamodb(), self.deployment.jobs_table
        lines = (line for line in self.limits.lines() if line.cause is Cause.BREAKER)
        parked = AttentionCounts(client, table=table).parked(lambda _: lines)
        forced = configuration_store(self.deployment).acting().forced_breakers(clock.now())
        found = held_lines.breakers(client, table=table, parked=parked, forced=forced, names=names)
        return tuple(each for each in found if not names or each.breaker.name in names)

    @cached_property
    def audit_log(self) -> DynamoAuditLog:
        found = self.deployment
        return DynamoAuditLog(clients.dynamodb(), table=found.jobs_table, retention=found.audit_retention)

    @cached_property
    def auditor(self) -> Auditor:
        return Auditor(self.audit_log, clock=clock.now, new_token=ids.new_token)

    @cached_property
    def redriver(self) -> Redriver:
        return Redriver(store=self.store, clock=clock.now, new_token=ids.new_token)

    @cached_property
    def purger(self) -> Purger:
        return Purger(store=self.store, clock=clock.now)

    @cached_property
    def migrations(self) -> Tidemill:
        """Submits the jobs of `tidemill migrate`."""
        return Tidemill.at(
            self.deployment.jobs_table,
            tenant=MIGRATION_TENANT,
            job_packages=[MIGRATION_PACKAGE],
            client=clients.dynamodb(),
            listed=False,
        )

    @cached_property
    def replays(self) -> Tidemill:
        """Submits the jobs of `tidemill replay`."""
        return Tidemill.at(
            self.deployment.jobs_table,
            tenant=REPLAY_TENANT,
            job_packages=[EVENT_PACKAGE],
            client=clients.dynamodb(),
            listed=False,
        )

    def table_passes(self, read_units: int) -> TablePasses:
        """`read_units` are those that the passes may take per second."""
        return TablePasses(
            store=DynamoPasses(clients.dynamodb(), table=self.deployment.jobs_table, new_token=ids.new_token),
            scan=DynamoTableScan(clients.dynamodb(), table=self.deployment.jobs_table),
            pace=Pace(read_units, clock=clock.steady, pause=time.sleep),
            clock=clock.now,
            new_token=ids.new_token,
            draw=random_draw.draw,
        )

    @cached_property
    def payloads(self) -> OwingPayloads:
        return OwingPayloads(self._payloads_alone, owed=lambda: self._owed, clock=clock.now)

    @cached_property
    def _payloads_alone(self) -> DynamoPayloads:
        return DynamoPayloads(
            clients.dynamodb(),
            table=self.deployment.jobs_table,
            bucket=lambda: Bucket(clients.s3(), self.deployment.files_bucket),
            new_token=ids.new_token,
        )

    @cached_property
    def limits(self) -> DynamoLimits:
        return DynamoLimits(clients.dynamodb(), table=self.deployment.jobs_table)

    @property
    def _owed(self) -> DynamoOwedWork:
        return DynamoOwedWork(clients.dynamodb(), table=self.deployment.jobs_table)

    @property
    def owed_runner(self) -> OwedRunner:
        return OwedRunner(owed=self._owed, store=self.store, payloads=self._payloads_alone, clock=clock.now)

    def reconciler(self, limit: timedelta) -> Reconciler:
        """`limit` is the time that a job may be overdue. The delay of each lane is read once."""

        @cache
        def lane_delay(lane: Lane) -> timedelta:
            urls = self.deployment.lanes.get(lane)
            if urls is None:
                return timedelta(0)  # a lane that is not deployed delays no job
            return delay(clients.sqs(), clients.cloudwatch(), urls.queue, now=clock.now())

        writes = Pace(MOST_WRITES_PER_SECOND, clock=clock.steady, pause=time.sleep)
        return Reconciler(store=self.store, clock=clock.now, limit=limit, lane_delay=lane_delay, writes=writes)

    @cached_property
    def control(self) -> Control:
        """For jobs of any tenant."""
        return Control(store=self.store, clock=clock.now, new_token=ids.new_token)

    @cached_property
    def undoer(self) -> Undoer:
        """For jobs of any tenant."""
        return Undoer(store=self._submitting_store, payloads=self.payloads, clock=clock.now, find=self.control.find)

    @cached_property
    def _submitting_store(self) -> DynamoJobStore:
        """The jobs that it inserts are in the listing, if the stage keeps one."""
        indexes = Indexes(listed=self.keeps_listing, shards=INDEX_SHARDS)
        found = self.deployment
        return DynamoJobStore(clients.dynamodb(), table=found.jobs_table, retention=found.retention, indexes=indexes)

    @cached_property
    def flow_look(self) -> FlowLook:
        """To read the flows of any tenant."""
        store = self._submitting_store
        flows = DynamoFlows(clients.dynamodb(), table=self.deployment.jobs_table)
        submit = Submit(
            store=store, payloads=self.payloads, job_types=JobTypes({}), clock=clock.now, new_id=ids.new_job_id
        )
        graphs = FlowGraphs(store=flows, payloads=self.payloads)
        parts = FlowParts(flows=flows, jobs=store, submit=submit, graphs=graphs, clock=clock.now)
        return FlowLook(parts)

    @cached_property
    def batch_members(self) -> BatchMembers:
        """To read the batches of any tenant."""
        pages = DynamoBatchPages(clients.dynamodb(), table=self.deployment.jobs_table)
        return BatchMembers(store=self.store, batches=pages, clock=clock.now, new_token=ids.new_token)

    @cached_property
    def finder(self) -> JobFinder:
        return JobFinder(clients.dynamodb(), table=self.deployment.jobs_table)

    @cached_property
    def listing(self) -> DynamoListing:
        return DynamoListing(clients.dynamodb(), table=self.deployment.jobs_table, read=self.store.get_many)

    @cached_property
    def member_listing(self) -> MemberListing:
        batches = DynamoBatchPages(clients.dynamodb(), table=self.deployment.jobs_table)
        return MemberListing(batches, read=self.store.get_many)

    @property
    def keeps_listing(self) -> bool:
        """Whether the stage keeps the listing index. It holds the jobs that were submitted since then."""
        with translated():
            table = clients.dynamodb().describe_table(TableName=self.deployment.jobs_table)["Table"]
        return any(index["IndexName"] == LISTING_INDEX for index in table.get("GlobalSecondaryIndexes", ()))

    def search(self, read_units: int) -> JobSearch:
        """`read_units` are those that the search may take per second."""
        scan = DynamoJobScan(clients.dynamodb(), table=self.deployment.jobs_table)
        return JobSearch(scan, Pace(read_units, clock=clock.steady, pause=time.sleep))

    def own_tenants(self) -> list[str]:
        """The tenant that the API would see in a signed request of this caller. Empty if STS does not say."""
        try:
            identity = clients.sts().get_caller_identity()
        except AWS_ERRORS:
            return []
        return [f"{identity['Account']}:{identity['UserId'].partition(':')[0]}"]

    def facts(self, tenant: str, job_id: str) -> Facts | None:
        """For `explain`. None if the tenant has no such job."""
        reader = JobFacts(
            clients.dynamodb(),
            clients.sqs(),
            table=self.deployment.jobs_table,
            queues={lane: urls.queue for lane, urls in self.deployment.lanes.items()},
            clock=clock.now,
        )
        facts = reader.read(tenant, job_id)
        if facts is None or facts.job.state.terminal:
            return facts
        try:
            return replace(facts, stopped=system_status.stopped_functions(self.deployment, facts.job.lane))
        except (TidemillError, *AWS_ERRORS) as error:
            say(visible_lines(f"The event source mappings and schedules were not read: {error}"))
            return facts

    def status(self) -> SystemStatus:
        return system_status.read(self.deployment, now=clock.now())

    def function_stacks(self) -> list[FunctionStack]:
        stage = self.deployment.stage
        return deployment.function_stacks(clients.cloudformation(), stage)

    def function_versions(self, stacks: Sequence[FunctionStack]) -> list[FunctionVersions]:
        return function_versions.read(clients.lambda_(), stacks)

    def delete_version(self, function: FunctionVersions, number: int) -> None:
        function_versions.delete(clients.lambda_(), function.name, number)

    def move_versions(self, moves: Sequence[Move]) -> None:
        alias_moves.move(clients.lambda_(), moves)

    def job_logs(self, job_id: str, *, since: datetime) -> JobLogs:
        found = self.deployment
        groups = deployment.log_groups(clients.cloudformation(), found)
        return JobLogs(clients.logs(), groups, job_id, since=since, clock=clock.now)

    def dead_entries(self) -> int | None:
        """How many dead jobs the index holds at most. None if they are too many to count."""
        counts = AttentionCounts(clients.dynamodb(), table=self.deployment.jobs_table)
        counted = counts.jobs(State.DEAD, most=_MOST_COUNTED)
        return counted.number if counted.exact else None

    def dlq_messages(self, lane: str) -> int:
        return backlog(clients.sqs(), self.deployment.lanes[lane].dead_letters).total

    def dead_letter_queue(self, lane: str) -> SqsDeadLetterQueue:
        found = self.deployment
        return SqsDeadLetterQueue(clients.sqs(), found.lanes[lane].dead_letters, epoch=found.epoch)
