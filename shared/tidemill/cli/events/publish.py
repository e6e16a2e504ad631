"""`tidemill publish`: publish an event over the HTTP API."""

import json

import click

from tidemill.cli.explain.watch import watch_jobs
from tidemill.cli.formatting import visible
from tidemill.cli.installation import Installation
from tidemill.cli.json_input import read_source
from tidemill.cli.options import json_option
from tidemill.cli.output import say, show_json
from tidemill.cli.submission.keyed_post import checked_key, posted


@click.command()
@click.argument("type_", metavar="TYPE")
@click.argument("data", metavar="[DATA|-|@FILE]", default="{}")
@click.option(
    "--key", callback=checked_key, metavar="KEY", help="Idempotency key: the same type and key are one event."
)
@click.option("--version", type=click.IntRange(min=1), metavar="VERSION", help="Of the event type; 1 by default.")
@click.option("--group", metavar="GROUP", help="Each consumer runs the events of one group one at a time, in order.")
@click.option("--wait", is_flag=True, help="Watch the job of the event until it ends, as `tidemill watch` does.")
@json_option("Print the job as one line of JSON, also to a terminal.")
@click.pass_context
def publish(
    ctx: click.Context,
    type_: str,
    data: str,
    *,
    key: str | None,
    version: int | None,
    group: str | None,
    wait: bool,
    as_json: bool,
) -> None:
    """Publish an event of TYPE and print its job as JSON.

    DATA is JSON; `-` reads it from stdin, @FILE from a file. The default is {}.

    The payload of the job names the consumers that the event reaches. Each gets a job of its own when the job of the
    event succeeds.
    """
    installation: Installation = ctx.obj
    members = {"type": json.dumps(type_), "data": read_source(data, hint="DATA")}
    given = {"version": version, "group": group}
    members |= {name: json.dumps(value) for name, value in given.items() if value is not None}
    job = posted(installation, "/events", members, made="event", key=key)
    if not wait:
        show_json(job, one_line=as_json)
        return
    say(f"Accepted as {visible(job['id'])}.")
    ctx.exit(watch_jobs(installation, [job["id"]], one_line=as_json))
