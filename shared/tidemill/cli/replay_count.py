"""Counts the events of a replay by reading alone, for `tidemill replay --dry-run`.

The filter and the payload model of the consumer are in the deployed code, so the true number may be smaller.
"""

import time
from datetime import timedelta
from typing import Final

from tidemill.application.job_types import JobType, JobTypes
from tidemill.application.pace import Pace
from tidemill.application.replay import Progress, Replayer, StoredEvents
from tidemill.application.scanned_events import ScannedEvents
from tidemill.application.submit import Submit
from tidemill.aws import clients
from tidemill.cli.installation import Installation
from tidemill.domain.events import Consumption
from tidemill.domain.retry import RetryPolicy
from tidemill.dynamodb.job_scan import DynamoJobScan
from tidemill.dynamodb.listed_events import ListedEvents
from tidemill.fan_out.replay import ReplayRequest
from tidemill.names import Lane
from tidemill.system import clock, ids

COUNTED_FOR: Final = timedelta(minutes=1)


def counted(installation: Installation, request: ReplayRequest) -> Progress:
    """Return the count of a dry run. It is not complete if it has stopped after `COUNTED_FOR`."""
    store, payloads = installation.store, installation.payloads
    job_types = JobTypes({request.consumer: _stand_in(request)})
    replayer = Replayer(
        events=_events(installation, request),
        store=store,
        payloads=payloads,
        submit=Submit(store=store, payloads=payloads, job_types=job_types, clock=clock.now, new_id=ids.new_token),
        jobs=Pace(request.rate, clock=clock.steady, pause=time.sleep),
        clock=clock.now,
        new_token=ids.new_token,
    )
    ends = clock.now() + COUNTED_FOR
    return replayer.run(request.wanted, Progress(), time_left=lambda: ends - clock.now(), save=lambda _progress: None)


def _events(installation: Installation, request: ReplayRequest) -> StoredEvents:
    client, table = clients.dynamodb(), installation.deployment.jobs_table
    if request.tenant is not None and installation.keeps_listing:
        return ListedEvents(client, table=table, tenant=request.tenant, read=installation.store.get_many)
    pace = Pace(request.read_units, clock=clock.steady, pause=time.sleep)
    return ScannedEvents(DynamoJobScan(client, table=table), pace)


def _stand_in(request: ReplayRequest) -> JobType:
    """The consumer, as it would be without a filter and with a model that takes any data."""
    return JobType(
        name=request.consumer,
        lane=Lane.BULK,
        retry=RetryPolicy(max_attempts=1),
        parse=lambda data: data,
        handler=lambda _payload, _run: None,
        consumes=(Consumption(type=request.event),),
    )
