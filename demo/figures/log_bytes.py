"""`python -m demo.figures log-bytes` counts the bytes that our log lines of one job have, with their metrics.

The real telemetry writes the lines of a job with ids of real length. Each line is that of one job alone.
"""

import io
from contextlib import redirect_stdout
from datetime import UTC, datetime, timedelta
from typing import Final

from rich.console import Console
from rich.table import Table

from tidemill.application.attempt.attempt_report import Ending, Report
from tidemill.application.dispatch.publish import Published
from tidemill.application.submission.new_jobs import Accepted
from tidemill.domain.dispatch.dispatch import Dispatch
from tidemill.domain.dispatch.job_message import reference_to
from tidemill.domain.job import AttemptError, Job
from tidemill.domain.job_parts import Lease, StoredPayload
from tidemill.domain.records import replace
from tidemill.domain.states import State
from tidemill.names import Lane
from tidemill.telemetry.outcome_log import Telemetry, logger
from tidemill.telemetry.run_lines import RunLines

_NOW: Final = datetime(2026, 1, 1, tzinfo=UTC)
_SECOND: Final = timedelta(seconds=1)
_JOB: Final = Job(
    tenant="111122223333:AROAEXAMPLEID12345678",
    id="0196b6f0-7d3a-7c11-9a3e-2f6d0c0e8f11",
    type="invoice.send",
    lane=Lane.DEFAULT,
    payload=StoredPayload(text="{}"),
    body_hash="0" * 64,
    # This text is as long as the request id of API Gateway.
    trace="KXkAnhDxDoEEJSA=",
    state=State.RUNNING,
    generation=1,
    attempt=1,
    created_at=_NOW,
    lease=Lease(ready_at=_NOW, claimed_at=_NOW + _SECOND),
)


def measure() -> dict[str, int]:
    """Bytes of each line, and of all lines of one job."""
    telemetry = Telemetry(stage="prod")
    lines = RunLines(
        telemetry=telemetry,
        lane=Lane.DEFAULT,
        request_id="5f0d1a2e-3b4c-4d5e-8f90-123456789abc",
        version="0a1b2c3",
    )
    dispatch = Dispatch(lane=Lane.DEFAULT, body=reference_to(_JOB), delay_seconds=0)
    settled_at = _NOW + 2 * _SECOND
    output = io.StringIO()
    found: dict[str, int] = {}

    def written(name: str) -> None:
        found[name] = len(output.getvalue().encode())
        output.seek(0)
        output.truncate()

    with redirect_stdout(output):
        # It keeps the standard output of its first use.
        logger()
        telemetry.accepted(Accepted(job=_JOB, replayed=False), over_http=True)
        written("accepted")
        telemetry.published(Published(sent=[dispatch]))
        written("dispatched")
        lines.claimed(_JOB)
        written("claimed")
        lines.ended(reference_to(_JOB), Report(ending=Ending.SUCCEEDED, job=_JOB, settled_at=settled_at))
        written("succeeded")
        lines.claimed(_JOB)
        lines.ended(reference_to(_JOB), _failure(settled_at))
        written("a failed attempt, claimed and retrying")
    found["a successful job"] = sum(found[name] for name in ("accepted", "dispatched", "claimed", "succeeded"))
    return found


def _failure(settled_at: datetime) -> Report:
    def handler(levels: int) -> None:
        if levels:
            handler(levels - 1)
        raise ValueError("x" * 1000)

    error = AttemptError(attempt=1, at=settled_at, error_class="ValueError", message="", retryable=True)
    try:
        handler(20)
    except ValueError as raised:
        return Report(
            ending=Ending.RETRYING,
            job=_JOB,
            settled_at=settled_at,
            error=f"ValueError: {raised}"[:500],
            cause=raised,
            errors=(replace(error, next_due=settled_at + _SECOND),),
        )
    raise AssertionError("the handler raises")


def main() -> None:
    table = Table("line", "bytes", title="log lines of one job, with their metrics")
    for name, number in measure().items():
        table.add_row(name, f"{number:,.0f}")
    Console().print(table)
