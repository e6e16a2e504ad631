"""The deployed Tidemill that the commands work on. Located on first use, with the usual AWS credentials."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING

from tidemill.application.configuration import Configurator
from tidemill.application.control.purge import Purger
from tidemill.application.control.redrive import Redriver
from tidemill.application.explain.explanation import Facts
from tidemill.application.operations.audit import Auditor
from tidemill.application.passes.job_search import JobSearch
from tidemill.aws import clients
from tidemill.aws.clients import AWS_ERRORS, translated
from tidemill.aws.http_client import HttpApi, by_signature, by_token
from tidemill.cli.formatting import visible_lines
from tidemill.cli.output import say
from tidemill.client import Tidemill
from tidemill.domain.errors import TidemillError
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.domain.waiting.waiting import Cause, Line
from tidemill.dynamodb.indexes import Indexes
from tidemill.dynamodb.job_store import DynamoJobStore
from tidemill.dynamodb.operations.attention_counts import AttentionCounts, Counted
from tidemill.dynamodb.operations.audit_items import DynamoAuditLog
from tidemill.dynamodb.payloads import Bucket
from tidemill.names import (
    EVENT_PACKAGE,
    INDEX_SHARDS,
    LISTING_INDEX,
    MIGRATION_PACKAGE,
    MIGRATION_TENANT,
    REPLAY_TENANT,
)
from tidemill.operator.configuration_source import configuration_store
from tidemill.operator.deployments import alias_moves, deployment, function_versions
from tidemill.operator.deployments.deployment import Deployment, FunctionStack
from tidemill.operator.deployments.function_versions import FunctionVersions
from tidemill.operator.deployments.rollback_plan import Move
from tidemill.operator.explain.find_job import JobFinder
from tidemill.operator.explain.job_facts import JobFacts
from tidemill.operator.explain.job_logs import JobLogs
from tidemill.operator.status import held_lines, system_status
from tidemill.operator.status.held_lines import BreakerStatus
from tidemill.operator.status.system_status import SystemStatus
from tidemill.operator.verified_caller import UNVERIFIED, verified_caller
from tidemill.parts import Parts
from tidemill.sqs.dead_letter_queue import SqsDeadLetterQueue
from tidemill.sqs.queue_depth import backlog
from tidemill.system import clock, ids

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

#: A progress bar counts at most so many jobs of each partition of the index: about 1,500 read units.
_MOST_COUNTED = 100_000


@dataclass(frozen=True)
class Installation(Parts):
    """The installation that the global options select."""

    stack: str | None = None
    profile: str | None = None
    region: str | None = None

    @cached_property
    def deployment(self) -> Deployment:
        clients.choose(profile=self.profile, region=self.region)
        return deployment.find(clients.cloudformation(), self.stack)

    @cached_property
    def client(self) -> "DynamoDBClient":
        clients.choose(profile=self.profile, region=self.region)
        return clients.dynamodb()

    @cached_property
    def table(self) -> str:
        return self.deployment.jobs_table

    @cached_property
    def retention(self) -> timedelta:
        return self.deployment.retention

    @cached_property
    def indexes(self) -> Indexes:
        """For stores that insert no job: `inserting_store` asks whether the stage keeps a listing."""
        return Indexes()

    def bucket(self) -> Bucket:
        return Bucket(clients.s3(), self.deployment.files_bucket)

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
    def configurator(self) -> Configurator:
        return Configurator(store=configuration_store(self.deployment), clock=clock.now)

    def waiting(self, line: Line) -> Counted:
        """The parked jobs of this line."""
        return AttentionCounts(self.client, table=self.table).in_line(line)

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

    @cached_property
    def inserting_store(self) -> DynamoJobStore:
        indexes = Indexes(listed=self.keeps_listing, shards=INDEX_SHARDS)
        return DynamoJobStore(self.client, table=self.table, retention=self.retention, indexes=indexes)

    @cached_property
    def finder(self) -> JobFinder:
        return JobFinder(self.client, table=self.table)

    @property
    def keeps_listing(self) -> bool:
        """Whether the stage keeps the listing index. It holds the jobs that were submitted since then."""
        with translated():
            table = clients.dynamodb().describe_table(TableName=self.deployment.jobs_table)["Table"]
        return any(index["IndexName"] == LISTING_INDEX for index in table.get("GlobalSecondaryIndexes", ()))

    def search(self, read_units: int) -> JobSearch:
        """`read_units` are those that the search may take per second."""
        return JobSearch(self.job_scan, self.pace(read_units))

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
        counts = AttentionCounts(self.client, table=self.table)
        counted = counts.jobs(State.DEAD, most=_MOST_COUNTED)
        return counted.number if counted.exact else None

    def dlq_messages(self, lane: str) -> int:
        return backlog(clients.sqs(), self.deployment.lanes[lane].dead_letters).total

    def dead_letter_queue(self, lane: str) -> SqsDeadLetterQueue:
        found = self.deployment
        return SqsDeadLetterQueue(clients.sqs(), found.lanes[lane].dead_letters, epoch=found.epoch)
