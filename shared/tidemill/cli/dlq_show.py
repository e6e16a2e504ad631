"""`tidemill dlq show`: all that there is to know of one dead job."""

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

import click

from tidemill.application.redrive import Selection
from tidemill.cli.dead_job_report import reason, report
from tidemill.cli.errors import ExplainedError, tell_unreadable
from tidemill.cli.formatting import NOTHING, age, instant, visible
from tidemill.cli.installation import Installation
from tidemill.cli.output import show, show_json
from tidemill.domain.job import AttemptError, Job, Redrive
from tidemill.domain.states import State
from tidemill.system import clock

HEADING: Final = "bold"


@click.command("show")
@click.argument("job_id", metavar="ID")
@click.option("--tenant", help="Whose job; needed only where two tenants have a job of this id.")
@click.option("--json", "as_json", is_flag=True, help="As one JSON object.")
@click.pass_obj
def dlq_show(installation: Installation, job_id: str, tenant: str | None, *, as_json: bool) -> None:
    """Show all about one dead job: payload, errors, redrives."""
    job = _of_tenant(installation, tenant, job_id) if tenant else _of_any_tenant(installation, job_id)
    if as_json:
        show_json(report(job))
    else:
        for line, style in _lines(job, now=clock.now()):
            show(line, style=style)


def _of_tenant(installation: Installation, tenant: str, job_id: str) -> Job:
    now = clock.now()
    job = installation.store.get(tenant, job_id)
    if job is None or job.expired(now):
        raise ExplainedError(f"tenant {tenant} has no job {job_id}", remedy="`tidemill dlq list` shows both names.")
    if job.state is not State.DEAD:
        raise ExplainedError(f"job {job_id} is not dead but {job.state}", remedy="`tidemill get ID` shows it.")
    return job


def _of_any_tenant(installation: Installation, job_id: str) -> Job:
    found = list(installation.redriver.plan(Selection(ids=[job_id]), unreadable=tell_unreadable))
    if not found:
        raise ExplainedError(
            f"no dead job has the id {job_id}",
            remedy="`tidemill dlq list` shows the dead; `tidemill get ID` shows a job of your own in any state.",
        )
    if len(found) > 1:
        tenants = ", ".join(sorted(job.tenant for job in found))
        raise ExplainedError(f"several tenants have a job {job_id}: {tenants}", remedy="Say whose with --tenant.")
    return found[0]


def _lines(job: Job, *, now: datetime) -> Iterator[tuple[str, str]]:
    """The report as text: each line with its style."""
    yield f"{visible(job.id)}  {visible(job.type)}  {job.state}: {reason(job)}", HEADING
    for name, value in {
        "tenant": job.tenant,
        "lane": job.lane,
        **({"group": job.group} if job.group else {}),
        "attempts": str(job.attempt),
        "submitted": _moment(job.created_at, now),
        "died": _moment(job.finished_at, now),
        "kept until": instant(job.expires_at) if job.expires_at else NOTHING,
        "trace": job.trace,
    }.items():
        yield f"  {name:<11}{visible(value)}", ""
    yield "payload", HEADING
    yield from ((f"  {visible(line)}", "") for line in _payload(job))
    yield "errors, the last ten at most", HEADING
    yield from ((f"  {_error(error)}", "") for error in job.errors)
    if job.redrives:
        yield "redrives", HEADING
        yield from ((f"  {_redrive(entry)}", "") for entry in job.redrives)


def _payload(job: Job) -> Sequence[str]:
    if job.payload is None:
        return [f"stored beside the job, at {job.payload_at}; its owner sees it with `tidemill get {job.id}`"]
    return json.dumps(json.loads(job.payload), indent=2, ensure_ascii=False).splitlines()


def _moment(value: datetime | None, now: datetime) -> str:
    return f"{instant(value)}  ({age(now - value)} ago)" if value else NOTHING


def _error(error: AttemptError) -> str:
    kind = "" if error.retryable else " (not retryable)"
    return f"{instant(error.at)}  attempt {error.attempt}{kind}: {visible(error.error_class)}: {visible(error.message)}"


def _redrive(entry: Redrive) -> str:
    return f"{instant(entry.at)}  by {visible(entry.by)}, after it had died of: {entry.death or NOTHING}"
