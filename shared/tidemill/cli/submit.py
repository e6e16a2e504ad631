"""`tidemill submit`: make jobs over the HTTP API."""

import json
import re
from datetime import datetime, timedelta
from typing import Any, Final

import click

from tidemill.cli.api_call import call
from tidemill.cli.errors import ExplainedError
from tidemill.cli.formatting import timestamp, visible
from tidemill.cli.installation import Installation
from tidemill.cli.json_input import read_payload
from tidemill.cli.output import say, show_json
from tidemill.cli.parameter_types import INSTANT, SPAN
from tidemill.cli.submit_batch import submit_batch
from tidemill.cli.watch import follow
from tidemill.names import Lane
from tidemill.operator.http_client import NoAnswerError

_LANES: Final = click.Choice(list(map(str, Lane)))
#: As the API takes it.
_KEY: Final = re.compile(r"[!-~]{1,255}")
_REPEAT: Final = "Repeat the command: with the same key it makes no second job."
_REPEAT_UNKEYED: Final = "If you repeat the command there may be two jobs; with a --key there could not."


def _key(_: click.Context, __: click.Parameter, key: str | None) -> str | None:
    if key is not None and not _KEY.fullmatch(key):
        raise click.BadParameter("a key is 1 to 255 visible ASCII characters, and no space")
    return key


@click.command()
@click.argument("type_", metavar="[TYPE]", required=False)
@click.argument("payload", metavar="[PAYLOAD|-|@FILE]", required=False)
@click.option(
    "--key", callback=_key, metavar="KEY", help="Idempotency key: the same key and body again give the same job."
)
@click.option(
    "--lane", type=_LANES, metavar="LANE", help="A lane less urgent than the type's own: critical, default, bulk."
)
@click.option("--delay", type=SPAN, metavar="SPAN", help="Not before this time has passed: 30s, 15m, 2h, 7d.")
@click.option("--run-at", type=INSTANT, metavar="TIME", help="Not before then: 2026-01-31T12:00:00Z.")
@click.option("--group", metavar="GROUP", help="Jobs of one group run one at a time, in the order accepted.")
@click.option("--deadline", type=INSTANT, metavar="TIME", help="If no run has begun by then, the job dies instead.")
@click.option(
    "--unique-seconds",
    type=click.FloatRange(min=1),
    metavar="SECONDS",
    help="One job of this type and payload in each period of so many seconds.",
)
@click.option(
    "--unique-key", metavar="KEY", help="With --unique-seconds: one of this key instead, whatever its payload."
)
@click.option("--batch", metavar="FILE", help="Submit a job for each line of this file; `-` is stdin.")
@click.option("--wait", is_flag=True, help="Follow the job to its end, as `tidemill watch` does.")
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
    deadline: datetime | None,
    unique_seconds: float | None,
    unique_key: str | None,
    batch: str | None,
    wait: bool,
) -> None:
    """Submit a job of TYPE and print it as JSON.

    PAYLOAD is JSON; `-` reads it from stdin, @FILE from a file. Without one it is {}.

    With --batch, each line is a JSON object as `POST /jobs` takes it, and may have an "idempotency_key". All lines are
    read before the first is sent. For each there is a line of JSON on stdout, and the exit code is 0 if all were
    accepted. A --key then is for the whole file: each line gets one of its own made from it, so that a repeat makes no
    second jobs.
    """
    if unique_key is not None and unique_seconds is None:
        raise click.UsageError("--unique-key needs --unique-seconds: unique in which period?")
    if delay is not None and run_at is not None:
        raise click.UsageError("give --delay or --run-at, not both")
    if key is not None and unique_seconds is not None:
        raise click.UsageError("a job has a --key or is unique by --unique-seconds, not both")
    how = {
        "lane": lane,
        "delay_seconds": delay and delay // timedelta(seconds=1),
        "run_at": run_at and timestamp(run_at),
        "group": group,
        "deadline": deadline and timestamp(deadline),
        "unique": unique_seconds and {"period_seconds": unique_seconds, "key": unique_key},
    }
    asked = {name: value for name, value in how.items() if value is not None}
    installation: Installation = ctx.obj
    if batch is not None:
        if type_ is not None or asked or wait:
            raise click.UsageError("each line of a batch says all of its job: besides --batch there is only --key")
        submit_batch(installation, batch, key=key)
        return
    if type_ is None:
        raise click.UsageError("say which TYPE of job, or --batch FILE")
    job = _submit(installation, type_, "{}" if payload is None else payload, asked, key=key)
    if not wait:
        show_json(job)
        return
    say(f"Accepted as {visible(job['id'])}.")
    ctx.exit(follow(installation, [job["id"]]))


def _submit(installation: Installation, type_: str, payload: str, how: dict[str, Any], *, key: str | None) -> Any:
    # The payload as written, and not as decoded and encoded again: numbers keep their digits.
    fields = {"type": json.dumps(type_), "payload": read_payload(payload)}
    fields |= {name: json.dumps(value) for name, value in how.items()}
    body = "{" + ", ".join(f'"{name}": {text}' for name, text in fields.items()) + "}"
    headers = {"Content-Type": "application/json"} | ({"Idempotency-Key": key} if key else {})
    try:
        job, answer = call(installation.api, "POST", "/jobs", body=body.encode(), headers=headers)
    except NoAnswerError as error:
        raise ExplainedError(
            "no answer came back, so whether the job was accepted is unknown",
            remedy=_REPEAT if key else _REPEAT_UNKEYED,
        ) from error
    if answer.headers.get("idempotent-replayed") == "true":
        say("This job was there already: its key was used before, or it is unique in its period.")
    return job
