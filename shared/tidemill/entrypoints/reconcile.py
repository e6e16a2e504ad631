"""Reconcile: the scheduler calls it daily, and alarms call it when they fire. It ignores the event.

An alarm fires once, while its cause may last. A repair that failed raises, so that Lambda retries the call. After the
last retry the call goes to the queue of missed calls.
"""

from datetime import timedelta

from tidemill import composition
from tidemill.application.reconcile import RepairAction
from tidemill.domain.errors import StoreUnavailableError
from tidemill.system import random_draw
from tidemill.worker.message_run import Invocation


def handle(event: object, context: Invocation) -> None:  # noqa: ARG001 - as Lambda calls it
    reconciled = composition.reconciler().run(
        composition.table_scan(),
        composition.dead_letter_queues(),
        draw=random_draw.draw,
        time_left=lambda: timedelta(milliseconds=context.get_remaining_time_in_millis()),
    )
    telemetry = composition.telemetry()
    telemetry.reconciled(reconciled)
    telemetry.flush()
    if failed := reconciled.count(RepairAction.FAILED):
        raise StoreUnavailableError(f"{failed} parts of the work could not be done")
