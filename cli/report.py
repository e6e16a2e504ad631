"""All that there is to know of one dead job, for programs and for people."""

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

from cli.wording import NOTHING, age, instant, timestamp, visible
from shared.adapters.view import view
from shared.domain.job import AttemptError, Job, Redrive

HEADING: Final = "bold"


def reason(job: Job) -> str:
    return job.death or NOTHING


def error_class(job: Job) -> str:
    return job.errors[-1].error_class if job.errors else NOTHING


def died_at(job: Job) -> datetime:
    return job.finished_at or job.created_at


def report(job: Job) -> dict[str, Any]:
    """What the owner sees over HTTP, and what only operators do."""
    redrives = [{"at": timestamp(entry.at), "by": entry.by, "death": entry.death} for entry in job.redrives]
    return {"tenant": job.tenant, **view(job), "trace": job.trace, "redrives": redrives}


def lines(job: Job, *, now: datetime) -> Iterator[tuple[str, str]]:
    """The report as text: each line with its style."""
    yield f"{visible(job.id)}  {visible(job.type)}  {job.state}: {reason(job)}", HEADING
    for name, value in {
        "tenant": job.tenant,
        "lane": job.lane,
        "attempts": str(job.attempt),
        "submitted": _moment(job.created_at, now),
        "died": _moment(job.finished_at, now),
        "kept until": instant(job.expires_at) if job.expires_at else NOTHING,
        "trace": job.trace,
    }.items():
        yield f"  {name:<11}{visible(value)}", ""
    yield "payload", HEADING
    for line in json.dumps(json.loads(job.payload), indent=2, ensure_ascii=False).splitlines():
        yield f"  {visible(line)}", ""
    yield "errors, the last ten at most", HEADING
    yield from ((f"  {_error(error)}", "") for error in job.errors)
    if job.redrives:
        yield "redrives", HEADING
        yield from ((f"  {_redrive(entry)}", "") for entry in job.redrives)


def _moment(value: datetime | None, now: datetime) -> str:
    return f"{instant(value)}  ({age(now - value)} ago)" if value else NOTHING


def _error(error: AttemptError) -> str:
    kind = "" if error.retryable else " (not retryable)"
    return f"{instant(error.at)}  attempt {error.attempt}{kind}: {visible(error.error_class)}: {visible(error.message)}"


def _redrive(entry: Redrive) -> str:
    return f"{instant(entry.at)}  by {visible(entry.by)}, after it had died of: {entry.death or NOTHING}"
