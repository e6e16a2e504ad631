"""All that there is to know of one dead job, for programs and for people."""

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final

from tidemill.cli.errors import explain, visible_lines
from tidemill.cli.formatting import NOTHING, age, instant, visible
from tidemill.cli.output import say
from tidemill.domain.errors import TidemillError
from tidemill.domain.job import AttemptError, Job, Redrive
from tidemill.http.job_view import view

HEADING: Final = "bold"


def reason(job: Job) -> str:
    return job.death or NOTHING


def error_class(job: Job) -> str:
    return job.errors[-1].error_class if job.errors else NOTHING


def ended_at(job: Job) -> datetime:
    return job.finished_at or job.created_at


def tell_unreadable(tenant: str, job_id: str, error: TidemillError) -> None:
    """`Unreadable`, for commands that read many jobs: one that they cannot read is said, and the others are shown."""
    say(visible_lines(f"Passed over job {job_id} of {tenant}.\n{explain(error)}"))


def report(job: Job) -> dict[str, Any]:
    """What the owner sees over HTTP, and what only operators do."""
    shown = view(job, payload=job.payload)
    return {"tenant": job.tenant, **shown, "payload_at": job.payload_at, "trace": job.trace}


def lines(job: Job, *, now: datetime) -> Iterator[tuple[str, str]]:
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
