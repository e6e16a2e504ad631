"""`tidemill logs`: the log lines of one job, from all functions of the stage."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from time import sleep
from typing import Any, Final

import click

from tidemill.cli.api_call import ApiError, call, job_path
from tidemill.cli.formatting import timestamp, visible, visible_lines
from tidemill.cli.installation import Installation
from tidemill.cli.options import json_option
from tidemill.cli.output import say, show, show_json
from tidemill.cli.parameter_types import JOB_ID, TIMESTAMP_OR_AGE
from tidemill.domain.errors import StoreUnavailableError
from tidemill.domain.states import TERMINAL, State
from tidemill.operator.explain.job_logs import JobLogs, LogLine
from tidemill.system import clock, ids

#: Clocks differ, so a function may log the job before the time at which it was accepted.
_CLOCK_SKEW: Final = timedelta(minutes=1)
_DEFAULT_RANGE: Final = timedelta(days=1)
#: A round calls each of about 15 log groups. An account has 5 such calls a second, and needs some elsewhere:
#: https://aws.amazon.com/premiumsupport/knowledge-center/cloudwatch-logs-throttling/
_ROUND_SECONDS: Final = 5.0
#: `--follow` ends after so many rounds without a line of a job that has ended. CloudWatch shows lines seconds late.
_QUIET_ROUNDS: Final = 3
_STYLES: Final[Mapping[str, str]] = {"ERROR": "red", "CRITICAL": "red", "WARNING": "yellow"}
#: Fields that each line of the job repeats, or that the text has elsewhere.
_LEFT_OUT: Final = frozenset(
    {"job_id", "tenant", "job_type", "lane", "generation", "attempt", "trace", "request_id", "version"}
    | {"level", "location", "message", "service", "timestamp", "exception", "exception_name", "stack_trace", "_aws"}
    | {"stage", "xray_trace_id"}
)


@click.command()
@click.argument("job_id", type=JOB_ID, metavar="ID")
@click.option("--follow", is_flag=True, help="Wait for more lines until the job has ended.")
@click.option(
    "--since",
    type=TIMESTAMP_OR_AGE,
    metavar="TIME",
    help="Only lines written at or after TIME; default: since the job was submitted.",
)
@json_option("Print each line as a line of JSON.")
@click.pass_obj
def logs(installation: Installation, job_id: str, *, follow: bool, since: datetime | None, as_json: bool) -> None:
    """Show the log lines of one job in order, from all functions.

    The job may belong to any tenant. Your credentials must allow logs:FilterLogEvents.

    TIME is a duration before now, such as 2h or 7d, or a timestamp such as 2026-01-31T12:00:00Z.

    With --follow, it looks every five seconds, and ends when the job has ended and 15 seconds have brought no line.
    """
    if not re.fullmatch(r"[0-9A-Za-z-]{1,64}", job_id):
        raise click.BadParameter(f"{visible(job_id)} is not the ID of a job", param_hint="ID")
    since = since or _submitted_at(installation, job_id) - _CLOCK_SKEW
    reader = installation.job_logs(job_id, since=since)
    lines = reader.read()
    _show(lines, as_json=as_json)
    if follow:
        _follow(installation, reader, job_id, lines, as_json=as_json)
    elif not lines:
        say(f"No log line since {timestamp(since)} names this job. Lines appear some seconds after they are written.")


def _submitted_at(installation: Installation, job_id: str) -> datetime:
    """From the id, or from the job. An id that was made from an idempotency key holds no time."""
    if submitted_at := ids.submitted_at(job_id):
        return submitted_at
    try:
        job, _ = call(installation.api, "GET", job_path(job_id))
        return datetime.fromisoformat(job["created_at"])
    except (ApiError, StoreUnavailableError):
        say("The job is not one of your own, so only the last 24 hours are searched. --since sets another time.")
        return clock.now() - _DEFAULT_RANGE


def _follow(
    installation: Installation, reader: JobLogs, job_id: str, lines: Sequence[LogLine], *, as_json: bool
) -> None:
    tenant, quiet = _tenant(lines), 0
    while quiet < _QUIET_ROUNDS:
        sleep(_ROUND_SECONDS)
        lines = reader.read()
        tenant = tenant or _tenant(lines)
        _show(lines, as_json=as_json)
        quiet = quiet + 1 if not lines and _has_ended(installation, tenant, job_id) else 0


def _tenant(lines: Sequence[LogLine]) -> str | None:
    """The tenant of the job, as its lines name it."""
    return next((str(line.fields["tenant"]) for line in lines if line.fields and "tenant" in line.fields), None)


def _has_ended(installation: Installation, tenant: str | None, job_id: str) -> bool:
    """Also true for a job that has expired. Without any line, the caller's own job is looked for."""
    if tenant:
        job = installation.store.get(tenant, job_id)
        return job is None or job.state in TERMINAL
    try:
        own, _ = call(installation.api, "GET", job_path(job_id))
    except (ApiError, StoreUnavailableError):
        return False
    return State(own["state"]) in TERMINAL


def _show(lines: Sequence[LogLine], *, as_json: bool) -> None:
    for line in lines:
        if as_json:
            show_json(
                {"at": timestamp(line.at), "function": line.function, "line": line.fields or line.text}, one_line=True
            )
        else:
            for text, style in _text(line):
                show(text, style=style)


def _text(line: LogLine) -> Iterator[tuple[str, str]]:
    """The line and, indented below it, its traceback, each with its style."""
    start = f"{timestamp(line.at)}  {visible(line.function):<14}"
    if line.fields is None:
        yield f"{start}  {visible(line.text)}", ""
        return
    fields = line.fields
    level = str(fields.get("level", ""))
    attempt = f"attempt {fields['attempt']}" if fields.get("attempt") else ""
    rest = " ".join(f"{name}={_value(value)}" for name, value in fields.items() if name not in _hidden(fields))
    parts = (f"{level:<8}{attempt:<11}{fields.get('message', '')}", rest)
    yield visible("  ".join((start, *filter(None, parts)))), _STYLES.get(level, "")
    for exception in visible_lines(str(fields.get("exception") or "")).splitlines():
        yield f"    {exception}", "dim"


def _hidden(fields: Mapping[str, Any]) -> frozenset[str]:
    """Also the metrics in the line that count one: its message says so."""
    # https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
    try:
        directives = fields["_aws"]["CloudWatchMetrics"]
        metrics = {metric["Name"] for directive in directives for metric in directive["Metrics"]}
        return _LEFT_OUT | {"type"} | {name for name in metrics if fields.get(name) == 1}
    except (KeyError, TypeError):  # a line that a handler wrote may have any form
        return _LEFT_OUT


def _value(value: Any) -> str:
    return value if isinstance(value, str) and value and " " not in value else json.dumps(value)
