"""One deployed Tidemill as the commands see it: found when first needed, with ordinary AWS credentials."""

import getpass
import os
from dataclasses import dataclass
from datetime import timedelta
from functools import cache, cached_property

from tidemill.application.purge import Purger
from tidemill.application.reconcile import Reconciler
from tidemill.application.redrive import Redriver
from tidemill.aws import clients
from tidemill.dynamodb.job_store import DynamoJobStore
from tidemill.dynamodb.table_scan import DynamoTableScan
from tidemill.names import Lane
from tidemill.operator import deployment
from tidemill.operator.deployment import Deployment
from tidemill.operator.http_client import HttpApi, by_signature, by_token
from tidemill.sqs.queue_depth import Backlog, backlog, delay, oldest_age
from tidemill.sqs.queues import SqsDeadLetterQueue
from tidemill.system import clock


@dataclass(frozen=True)
class Installation:
    """The one that the global options name."""

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
    def store(self) -> DynamoJobStore:
        deployment = self.deployment
        return DynamoJobStore(clients.dynamodb(), table=deployment.jobs_table, retention=deployment.retention)

    @cached_property
    def redriver(self) -> Redriver:
        return Redriver(store=self.store, clock=clock.now, new_token=clock.new_token)

    @cached_property
    def purger(self) -> Purger:
        return Purger(store=self.store, clock=clock.now)

    @cached_property
    def table_scan(self) -> DynamoTableScan:
        return DynamoTableScan(clients.dynamodb(), table=self.deployment.jobs_table)

    def reconciler(self, limit: timedelta) -> Reconciler:
        """Asks once how far behind each lane is."""

        @cache
        def lane_delay(lane: Lane) -> timedelta:
            urls = self.deployment.lanes.get(lane)
            if urls is None:
                return timedelta(0)  # a lane that is not deployed delays nothing
            return delay(clients.sqs(), clients.cloudwatch(), urls.queue, now=clock.now())

        return Reconciler(store=self.store, clock=clock.now, limit=limit, lane_delay=lane_delay)

    def queue(self, lane: str) -> Backlog:
        return backlog(clients.sqs(), self.deployment.lanes[lane].queue)

    def dead_letters(self, lane: str) -> int:
        return backlog(clients.sqs(), self.deployment.lanes[lane].dead_letters).total

    def oldest_age(self, lane: str) -> timedelta | None:
        return oldest_age(clients.cloudwatch(), self.deployment.lanes[lane].queue, now=clock.now())

    def dead_letter_queue(self, lane: str) -> SqsDeadLetterQueue:
        return SqsDeadLetterQueue(clients.sqs(), self.deployment.lanes[lane].dead_letters)


def operator() -> str:
    """Who asks, for a person to read in an audit; not an identity that was verified."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user need not have a name
        return "unknown"
