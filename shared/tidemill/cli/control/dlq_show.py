"""`tidemill dlq show`: one dead job in full."""

import json
import shlex
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

import click

from tidemill.cli.errors import CommandError
from tidemill.cli.explain.any_tenant import one_tenant
from tidemill.cli.explain.job_report import reason, report
from tidemill.cli.formatting import DASH, age, readable_time, visible
from tidemill.cli.installation import Installation
from tidemill.cli.options import json_option
from tidemill.cli.output import show, show_json
from tidemill.cli.parameter_types import JOB_ID
from tidemill.domain.history import Transition
from tidemill.domain.job import AttemptError, Job, Redrive
from tidemill.domain.states import State
from tidemill.system import clock

_HEADING: Final = "bold"


@click.command("show")
@click.argument("job_id", type=JOB_ID, metavar="ID")
@click.option("--tenant", help="Tenant of the job; the command searches the index of dead jobs without it.")
@json_option("Print the job as one JSON object.")
@click.pass_obj
def dlq_show(installation: Installation, job_id: str, tenant: str | None, *, as_json: bool) -> None:
    """Show one dead job with its payload, errors, history and redrives."""
    job = _of_tenant(installation, tenant, job_id) if tenant else _of_any_tenant(installation, job_id)
    if as_json:
        show_json(report(job))
    else:
        for line, style in _lines(job, now=clock.now()):
            show(line, style=style)


def _of_tenant(installation: Installation, tenant: str, job_id: str) -> Job:
    now = clock.now()
    job = installation.store.get(tenant, job_id)
    if job is None or job.lifetime.over(now):
        raise CommandError(
            f"tenant {tenant} has no job {job_id}",
            remedy="`tidemill dlq list` shows the tenant of each dead job.",
        )
    if job.state is not State.DEAD:
        raise CommandError(
            f"job {job_id} is {job.state}, not dead",
            remedy=f"`tidemill get ID --tenant {tenant}` shows a job in any state.",
        )
    return job


def _of_any_tenant(installation: Installation, job_id: str) -> Job:
    """Search the keys in the index of dead jobs, and read that one job."""
    found = installation.finder.indexed(job_id, State.DEAD)
    return _of_tenant(installation, one_tenant(found, job_id, what="dead job"), job_id)


def _lines(job: Job, *, now: datetime) -> Iterator[tuple[str, str]]:
    """Each line of the text with its style."""
    yield f"{visible(job.id)}  {visible(job.type)}  {job.state}: {reason(job)}", _HEADING
    for name, value in {
        "tenant": job.tenant,
        "lane": job.lane,
        **({"group": job.group.key} if job.group.key else {}),
        **({"tags": ", ".join(job.tags)} if job.tags else {}),
        "attempts": str(job.attempt),
        "submitted": _time_and_age(job.created_at, now),
        "died": _time_and_age(job.finished_at, now),
        "kept until": readable_time(job.lifetime.expires_at) if job.lifetime.expires_at else DASH,
        "trace": job.trace,
    }.items():
        yield f"  {name:<11}{visible(value)}", ""
    yield "payload", _HEADING
    yield from ((f"  {visible(line)}", "") for line in _payload(job))
    yield "errors (at most the last ten)", _HEADING
    yield from ((f"  {_error(error)}", "") for error in job.known_errors)
    if job.errors and (text := job.errors[-1].traceback):
        yield "traceback of the last error", _HEADING
        yield from ((f"  {visible(line)}", "") for line in text.splitlines())
    yield "history (the last transitions)", _HEADING
    yield from ((f"  {_transition(entry)}", "") for entry in job.known_history)
    if job.redrives:
        yield "redrives", _HEADING
        yield from ((f"  {_redrive(entry)}", "") for entry in job.redrives)


def _payload(job: Job) -> Sequence[str]:
    if job.payload.text is None:
        command = f"tidemill get {shlex.quote(job.id)}"
        return [f"stored outside the job document, at {job.payload.location}; its owner can use `{command}`"]
    return json.dumps(json.loads(job.payload.text), indent=2, ensure_ascii=False).splitlines()


def _time_and_age(value: datetime | None, now: datetime) -> str:
    return f"{readable_time(value)}  ({age(now - value)} ago)" if value else DASH


def _error(error: AttemptError) -> str:
    kind = "" if error.retryable else " (not retryable)"
    text = f"{visible(error.error_class)}: {visible(error.message)}"
    return f"{readable_time(error.at)}  attempt {error.attempt}{kind}: {text}"


def _redrive(entry: Redrive) -> str:
    reason = f", because: {visible(entry.reason)}" if entry.reason else ""
    other = " with another payload" if entry.edited else ""
    return f"{readable_time(entry.at)}  by {visible(entry.by)}{other}, after death by: {entry.death or DASH}{reason}"


def _transition(entry: Transition) -> str:
    parts = [entry.state, *([entry.cause] if entry.cause != entry.state else [])]
    parts += [f"attempt {entry.attempt}"] if entry.attempt is not None else []
    parts += [f"by {entry.worker}"] if entry.worker else []
    return f"{readable_time(entry.at)}  {visible(', '.join(parts))}"
