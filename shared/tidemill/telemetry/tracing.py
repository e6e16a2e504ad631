"""Spans of submissions, messages, runs and settles. Does nothing, and imports nothing of OpenTelemetry, by default."""

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Protocol

from tidemill.domain.dispatch.dispatch import Dispatch
from tidemill.domain.error_text import error_text
from tidemill.domain.job import Job
from tidemill.names import Env
from tidemill.telemetry.outcome_log import logger


class Invocation(Protocol):
    """The Lambda context, as far as a span needs it."""

    @property
    def aws_request_id(self) -> str: ...

    def get_remaining_time_in_millis(self) -> int: ...


class Tracing:
    """No spans. `spans.Spans` overrides each method. None of them raises."""

    def invocation(self, name: str, invocation: Invocation) -> AbstractContextManager[None]:  # noqa: ARG002
        """The span of one invocation of a function. At its end, all spans have been exported."""
        return nullcontext()

    def submit(self, trace: str) -> AbstractContextManager[str]:
        """The span of one request that submits jobs. `trace` is the caller's; gives the trace of the jobs."""
        return nullcontext(trace)

    def published(self, sent: Sequence[Dispatch], *, began_ns: int) -> None:
        """A span for each message that was sent since `began_ns`, in the trace of its job."""

    def run(self, job: Job) -> AbstractContextManager[str]:
        """The span of a handler, current in its thread. Gives the trace of what the handler calls or submits."""
        return nullcontext(job.trace)

    def settle(self, job: Job) -> AbstractContextManager[None]:  # noqa: ARG002
        return nullcontext()

    def flush(self, *, longest_seconds: float) -> None:
        """Export the spans that have ended, and wait no longer than that."""


@cache
def tracing() -> Tracing:
    """The tracing of the stage. If that cannot begin, jobs run without spans, and a line says so.

    A package of OpenTelemetry may be missing, or refuse the value of one of its variables.
    """
    if os.environ.get(Env.TRACING) != "true":
        return Tracing()
    try:
        from tidemill.telemetry.spans import Spans  # noqa: PLC0415 - only a stage with tracing has its packages

        return Spans.of_this_function()
    except Exception as error:  # noqa: BLE001 - no job depends on its spans
        logger().error("no tracing", extra={"error": error_text(error)})
        return Tracing()
