"""Reconcile: called by the clock each day and by alarms, whatever they say; looks after what was left behind."""

from datetime import timedelta

from shared.adapters import clock, composition
from shared.adapters.message_run import Invocation


def handle(event: object, context: Invocation) -> None:  # noqa: ARG001 - as Lambda calls it
    reconciled = composition.reconciler().run(
        composition.survey(),
        composition.letter_boxes(),
        draw=clock.draw,
        time_left=lambda: timedelta(milliseconds=context.get_remaining_time_in_millis()),
    )
    telemetry = composition.telemetry()
    telemetry.reconciled(reconciled)
    telemetry.flush()
