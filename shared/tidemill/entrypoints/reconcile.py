"""Reconcile: compares the stack with its template, sweeps the dead-letter queues, and continues the table pass.

The scheduler calls it every five minutes, to continue the open pass or begin one that is due. Any other call, such as
that of an alarm, also asks for a new pass: an alarm fires once, and the pass must read the items that it is about. The
call raises if it cannot ask, so that Lambda retries it; after the last retry it goes to the queue of missed calls. What
fails later is left to the next call.
"""

import os
from collections.abc import Mapping
from datetime import timedelta
from functools import partial
from typing import Final

from tidemill.application.operations.reconcile import Reconciler
from tidemill.application.passes.table_pass import TablePasses
from tidemill.aws import clients
from tidemill.composition import parts
from tidemill.names import COMPARE, CONTINUE, Env, Lane
from tidemill.operator.drift import drift
from tidemill.settings import setting
from tidemill.sqs.dead_letter_queue import SqsDeadLetterQueue
from tidemill.worker.message_run import Invocation, time_left

#: The time that owed work leaves to the sweep and the pass.
OWED_RESERVE: Final = timedelta(seconds=30)


def handle(event: object, context: Invocation) -> dict[str, str] | None:
    """`tidemill smoke` asks only for the resources that differ from the template, and how, as this role sees them."""
    if isinstance(event, dict) and COMPARE in event:
        return dict(drifted())
    left = partial(time_left, context)
    passes = table_passes()
    if not (isinstance(event, dict) and CONTINUE in event):
        passes.ask()
    telemetry = parts().telemetry()
    telemetry.compared(drifted())
    telemetry.flush()
    reconciling = reconciler()
    telemetry.owed_result(parts().owed_runner.run_pending(lambda: left() > OWED_RESERVE))
    telemetry.reconciled(reconciling.sweep(dead_letter_queues(), time_left=left))
    # The pass may take all the time that is left, and Lambda may end the process in it.
    telemetry.flush()
    asked = True
    while asked:
        reconciled = reconciling.run(passes, time_left=left)
        telemetry.reconciled(reconciled)
        # Another call asked for a pass while this one held the pass that has ended now.
        asked = bool(reconciled.progress and reconciled.progress.completed and reconciled.progress.table_pass.asked)
    telemetry.flush()
    return None


def reconciler() -> Reconciler:
    """A new one for each invocation."""
    limit = timedelta(seconds=float(setting(Env.RECONCILE_LIMIT_SECONDS)))
    return parts().reconciler(limit, parts().lane_urls.get)


def table_passes() -> TablePasses:
    """New ones for each invocation."""
    return parts().table_passes(float(setting(Env.RECONCILE_READ_UNITS)))


def drifted() -> Mapping[str, str]:
    """Where the stack names itself; elsewhere nothing is compared."""
    stack = os.environ.get(Env.STACK)
    return drift.drifted(stack) if stack else {}


def dead_letter_queues() -> Mapping[Lane, SqsDeadLetterQueue]:
    return {
        lane: SqsDeadLetterQueue(clients.sqs(), urls.dead_letters, epoch=parts().epoch)
        for lane, urls in parts().lane_urls.items()
    }
