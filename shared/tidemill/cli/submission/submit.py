"""`tidemill submit`: submit jobs over the HTTP API."""

import json
from datetime import datetime, timedelta
from typing import Final

import click

from tidemill.cli.explain.watch import watch_jobs
from tidemill.cli.formatting import timestamp, visible
from tidemill.cli.installation import Installation
from tidemill.cli.json_input import read_source
from tidemill.cli.options import json_option
from tidemill.cli.output import say, show_json
from tidemill.cli.parameter_types import DURATION, TIMESTAMP
from tidemill.cli.submission.keyed_post import checked_key, posted
from tidemill.cli.submission.submit_batch import submit_batch
from tidemill.domain.time_constants import SECOND
from tidemill.names import Lane

_LANES: Final = click.Choice(list(map(str, Lane)))


@click.command()
@click.argument("type_", metavar="[TYPE]", required=False)
@click.argument("payload", metavar="[PAYLOAD|-|@FILE]", required=False)
@click.option(
    "--key", callback=checked_key, metavar="KEY", help="Idempotency key: the same key and body return the same job."
)
@click.option(
    "--lane", type=_LANES, metavar="LANE", help="A less urgent lane than that of the type: critical, default, bulk."
)
@click.option("--delay", type=DURATION, metavar="DURATION", help="Earliest start, from now: 30s, 15m, 2h, 7d.")
@click.option(
    "--run-at", type=TIMESTAMP, metavar="TIME", help="Earliest start, at most 366 days ahead: YYYY-MM-DDTHH:MM:SSZ."
)
@click.option("--group", metavar="GROUP", help="Jobs of one group run one at a time, in the order accepted.")
@click.option("--tag", "tags", multiple=True, metavar="TAG", help="A label to find the job by; up to five times.")
@click.option("--deadline", type=TIMESTAMP, metavar="TIME", help="The job dies if no run has begun by this time.")
@click.option(
    "--max-age",
    type=DURATION,
    metavar="DURATION",
    help="The job expires instead of a run once it is older than this, counted from its earliest start.",
)
@click.option(
    "--supersedes",
    metavar="KEY",
    help="The key or ID of your earlier job that this one corrects: it runs once that one is cancelled or undone.",
)
@click.option(
    "--unique-seconds",
    type=click.FloatRange(min=1),
    metavar="SECONDS",
    help="Accept one job of this type and payload per period of this many seconds.",
)
@click.option("--unique-key", metavar="KEY", help="With --unique-seconds: compare this key instead of the payload.")
@click.option(
    "--debounce",
    type=DURATION,
    metavar="DURATION",
    help="The job starts once you have submitted none of its type and debounce key for so long.",
)
@click.option("--debounce-key", metavar="KEY", help="With --debounce: the default is the payload.")
@click.option(
    "--debounce-max",
    type=DURATION,
    metavar="DURATION",
    help="With --debounce: the latest start, from the first submission. The default is ten times --debounce.",
)
@click.option(
    "--replace", type=click.Choice(["payload"]), help="With --debounce-key: the payload of the last submission counts."
)
@click.option("--batch", metavar="FILE", help="Submit one job per line of this file; `-` is stdin.")
@click.option("--wait", is_flag=True, help="Watch the job until it ends, as `tidemill watch` does.")
@json_option("Print the job as one line of JSON, also to a terminal.")
@click.pass_context
def submit(
    ctx: click.Context,
    type_: str | None,
    payload: str | None,
    *,
    key: str | None,
    lane: str | None,
    delay: timedelta | None,
    run_at: datetime | None,
    group: str | None,
    tags: tuple[str, ...],
    deadline: datetime | None,
    max_age: timedelta | None,
    supersedes: str | None,
    unique_seconds: float | None,
    unique_key: str | None,
    debounce: timedelta | None,
    debounce_key: str | None,
    debounce_max: timedelta | None,
    replace: str | None,
    batch: str | None,
    wait: bool,
    as_json: bool,
) -> None:
    """Submit a job of TYPE and print it as JSON.

    PAYLOAD is JSON; `-` reads it from stdin, @FILE from a file. The default is {}.

    With --batch, each line is a JSON object as in `POST /jobs`, with an optional "idempotency_key". The command checks
    all lines before it sends the first. It prints a line of JSON for each, and exits with 0 if all were accepted. A
    --key then applies to the whole file: each line gets a key of its own made from it, so running the command again
    creates no second jobs.
    """
    if unique_key is not None and unique_seconds is None:
        raise click.UsageError("--unique-key needs --unique-seconds")
    if delay is not None and run_at is not None:
        raise click.UsageError("give either --delay or --run-at, not both")
    if key is not None and unique_seconds is not None:
        raise click.UsageError("give either --key or --unique-seconds, not both")
    if debounce is None and (debounce_key, debounce_max, replace) != (None, None, None):
        raise click.UsageError("--debounce-key, --debounce-max and --replace need --debounce")
    options = {
        "lane": lane,
        "delay_seconds": _seconds(delay),
        "run_at": run_at and timestamp(run_at),
        "group": group,
        "tags": list(tags) or None,
        "deadline": deadline and timestamp(deadline),
        "max_age_seconds": _seconds(max_age),
        "supersedes": supersedes,
        "unique": unique_seconds and {"period_seconds": unique_seconds, "key": unique_key},
        "debounce_seconds": _seconds(debounce),
        "debounce_key": debounce_key,
        "debounce_max_seconds": _seconds(debounce_max),
        "replace": replace,
    }
    given = {name: value for name, value in options.items() if value is not None}
    installation: Installation = ctx.obj
    if batch is not None:
        if type_ is not None or given or wait:
            raise click.UsageError("--batch allows only --key beside it: each line describes its whole job")
        submit_batch(installation, batch, key=key)
        return
    if type_ is None:
        raise click.UsageError("give a TYPE, or --batch FILE")
    fields = {"type": json.dumps(type_), "payload": read_source("{}" if payload is None else payload)}
    fields |= {name: json.dumps(value) for name, value in given.items()}
    job = posted(installation, "/jobs", fields, made="job", key=key)
    if not wait:
        show_json(job, one_line=as_json)
        return
    say(f"Accepted as {visible(job['id'])}.")
    ctx.exit(watch_jobs(installation, [job["id"]], one_line=as_json))


def _seconds(duration: timedelta | None) -> int | None:
    return None if duration is None else duration // SECOND
