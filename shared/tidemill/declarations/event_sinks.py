"""Sinks of events, for the files in `functions/jobs`: a consumer that forwards the events of a type to EventBridge.

orders_on_bus = event_sink("bus.order-placed", event="order.placed", source="com.example.shop")
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tidemill.application.attempt.run import Run
from tidemill.application.job_types import JobType
from tidemill.declarations import declaration_checks as checks
from tidemill.declarations.events import consumes
from tidemill.declarations.job_type_decorator import job_type
from tidemill.domain.errors import DeclarationError, PermanentJobError
from tidemill.domain.events.events import FIRST_VERSION, Scalar
from tidemill.names import Env, Lane
from tidemill.settings import setting

__all__ = ["event_sink"]

#: https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutEventsRequestEntry.html
_RESERVED: Final = "aws."
_MAX_ATTEMPTS: Final = 12


def event_sink(
    name: str,
    *,
    event: str,
    source: str,
    version: int = FIRST_VERSION,
    filter: Mapping[str, Scalar | Sequence[Scalar]] | None = None,  # noqa: A002 - as in `consumes`
    lane: Lane = Lane.DEFAULT,
    max_attempts: int = _MAX_ATTEMPTS,
    bus: str = Env.EVENT_BUS,
) -> JobType:
    """Declare a job type that sends each event of one type and version to a bus, at least once.

    `source` is that of the events on the bus, and their detail type is the event type. The detail has `id`, which is
    the same each time that the event is sent, `type`, `version` and `data`. A call that fails is retried as every job
    is. `bus` is the environment variable with the name of the bus, which the construct `BusSink` sets. Raises
    `DeclarationError`.
    """
    from pydantic import BaseModel  # noqa: PLC0415 - `payload_model` says why

    # The handler is the engine's, and the name is the app's.
    checks.require_app_name(name)
    if not source or str(source).startswith(_RESERVED):
        raise DeclarationError(f"source is {source!r}; it must be text that does not begin with {_RESERVED!r}")

    class Forwarded(BaseModel, extra="allow"):
        """Any data: the model of the event has checked it."""

    def send(payload: Forwarded, run: Run) -> dict[str, str]:
        from tidemill.aws import event_bus  # noqa: PLC0415 - no other job needs its client

        detail: dict[str, Any] = {
            # A job that no event made, such as in a trial, is an event of its own.
            "id": run.parent or run.job_id,
            "type": event,
            "version": version,
            "data": payload.model_dump(mode="json"),
        }
        try:
            sent = event_bus.put(setting(bus), source=source, detail_type=event, detail=detail)
        except event_bus.UnsendableEntryError as error:
            raise PermanentJobError(str(error)) from error
        return {"sent_as": sent}

    declared = job_type(name, payload=Forwarded, lane=lane, max_attempts=max_attempts)(send)
    return consumes(event, filter=filter, version=version)(declared)
