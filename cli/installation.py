"""One deployed Millrace as the commands see it: found when first needed, with ordinary AWS credentials."""

import getpass
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property

from shared.adapters import clients, clock, deployment
from shared.adapters.backlog import Backlog, backlog, oldest_age
from shared.adapters.deployment import Deployment
from shared.adapters.job_store import DynamoJobStore
from shared.adapters.queues import SqsLetterBox
from shared.adapters.signed_api import SignedApi
from shared.application.redrive import Redriver


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
    def api(self) -> SignedApi:
        found = self.deployment
        return SignedApi(found.api_url, credentials=clients.credentials(), region=found.region)

    @cached_property
    def store(self) -> DynamoJobStore:
        # The retention is for whoever settles jobs, which the command line never does.
        table = self.deployment.jobs_table
        return DynamoJobStore(clients.dynamodb(), table=table, retention=timedelta())

    @cached_property
    def redriver(self) -> Redriver:
        return Redriver(store=self.store, clock=clock.now, new_token=clock.new_token)

    def queue(self, lane: str) -> Backlog:
        return backlog(clients.sqs(), self.deployment.lanes[lane].queue)

    def letters(self, lane: str) -> int:
        return backlog(clients.sqs(), self.deployment.lanes[lane].letters).total

    def oldest_age(self, lane: str) -> timedelta | None:
        return oldest_age(clients.cloudwatch(), self.deployment.lanes[lane].queue, now=clock.now())

    def letter_box(self, lane: str) -> SqsLetterBox:
        return SqsLetterBox(clients.sqs(), self.deployment.lanes[lane].letters)


def operator() -> str:
    """Who asks, for a person to read in an audit; not an identity that was verified."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user need not have a name
        return "unknown"
