"""The part of the composition root that only reconcile needs, so that other functions need not import it."""

import os
import time
from collections.abc import Mapping
from datetime import timedelta
from functools import cache

from tidemill import composition
from tidemill.application.pace import MOST_WRITES_PER_SECOND, Pace
from tidemill.application.reconcile import Reconciler
from tidemill.application.table_pass import TablePasses
from tidemill.aws import clients
from tidemill.dynamodb.passes import DynamoPasses
from tidemill.dynamodb.table_scan import DynamoTableScan
from tidemill.names import Env, Lane
from tidemill.operator import drift
from tidemill.settings import setting
from tidemill.sqs import queue_depth
from tidemill.sqs.dead_letter_queue import SqsDeadLetterQueue
from tidemill.system import clock, ids, random_draw


def reconciler() -> Reconciler:
    """A new one for each invocation. It reads the delay of each lane once."""

    @cache
    def lane_delay(lane: Lane) -> timedelta:
        urls = composition.lane_urls().get(lane)
        # Nothing waits on a lane that is no longer deployed.
        return (
            queue_depth.delay(clients.sqs(), clients.cloudwatch(), urls.queue, now=clock.now())
            if urls
            else timedelta(0)
        )

    limit = timedelta(seconds=float(setting(Env.RECONCILE_LIMIT_SECONDS)))
    writes = Pace(MOST_WRITES_PER_SECOND, clock=clock.steady, pause=time.sleep)
    return Reconciler(store=composition.store(), clock=clock.now, limit=limit, lane_delay=lane_delay, writes=writes)


def drifted() -> Mapping[str, str]:
    """Where the stack names itself; elsewhere nothing is compared."""
    stack = os.environ.get(Env.STACK)
    return drift.drifted(stack) if stack else {}


def table_passes() -> TablePasses:
    """New ones for each invocation, whose reads begin with no debt."""
    pace = Pace(float(setting(Env.RECONCILE_READ_UNITS)), clock=clock.steady, pause=time.sleep)
    return TablePasses(
        store=DynamoPasses(composition.dynamodb(), table=setting(Env.JOBS_TABLE), new_token=ids.new_token),
        scan=DynamoTableScan(composition.dynamodb(), table=setting(Env.JOBS_TABLE)),
        pace=pace,
        clock=clock.now,
        new_token=ids.new_token,
        draw=random_draw.draw,
    )


def dead_letter_queues() -> Mapping[Lane, SqsDeadLetterQueue]:
    return {
        lane: SqsDeadLetterQueue(clients.sqs(), urls.dead_letters, epoch=composition.epoch())
        for lane, urls in composition.lane_urls().items()
    }
