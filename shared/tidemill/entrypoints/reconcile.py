"""Reconcile: compares the stack with its template, sweeps the dead-letter queues, and continues the table pass.

The scheduler calls it every five minutes, to continue the open pass or begin one that is due. Any other call, such as
that of an alarm, also asks for a new pass: an alarm fires once, and the pass must read the items that it is about. The
call raises if it cannot ask, so that Lambda retries it; after the last retry it goes to the queue of missed calls. What
fails later is left to the next call.
"""

from datetime import timedelta
from functools import partial
from typing import Final

from tidemill import composition, reconcile_composition
from tidemill.names import COMPARE, CONTINUE
from tidemill.worker.message_run import Invocation, time_left

#: The time that owed work leaves to the sweep and the pass.
OWED_RESERVE: Final = timedelta(seconds=30)


def handle(event: object, context: Invocation) -> dict[str, str] | None:
    """`tidemill smoke` asks only for the resources that differ from the template, and how, as this role sees them."""
    if isinstance(event, dict) and COMPARE in event:
        return dict(reconcile_composition.drifted())
    left = partial(time_left, context)
    passes = reconcile_composition.table_passes()
    if not (isinstance(event, dict) and CONTINUE in event):
        passes.ask()
    telemetry = composition.telemetry()
    telemetry.compared(reconcile_composition.drifted())
    telemetry.flush()
    reconciler = reconcile_composition.reconciler()
    telemetry.owed_result(composition.owed_runner().run_pending(lambda: left() > OWED_RESERVE))
    telemetry.reconciled(reconciler.sweep(reconcile_composition.dead_letter_queues(), time_left=left))
    # The pass may take all the time that is left, and Lambda may end the process in it.
    telemetry.flush()
    asked = True
    while asked:
        reconciled = reconciler.run(passes, time_left=left)
        telemetry.reconciled(reconciled)
        # Another call asked for a pass while this one held the pass that has ended now.
        asked = bool(reconciled.progress and reconciled.progress.completed and reconciled.progress.table_pass.asked)
    telemetry.flush()
    return None
