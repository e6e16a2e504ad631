"""`millrace submit`: make a job over the HTTP API."""

import json
import sys
from pathlib import Path
from typing import Final, NoReturn

import click

from cli.calls import call
from cli.errors import ExplainedError
from cli.installation import Installation
from cli.screen import say, show_json
from shared.adapters.signed_api import NoAnswerError

_REPEAT: Final = "Repeat the command: with the same key it makes no second job."
_REPEAT_UNKEYED: Final = "If you repeat the command there may be two jobs; with a --key there could not."


def _key(_: click.Context, __: click.Parameter, key: str | None) -> str | None:
    """What a header can carry at all; whether it will do is the API's to say."""
    if key is not None and not (key and key.isascii() and key.isprintable()):
        raise click.BadParameter("a key is visible ASCII, and not empty")
    return key


@click.command()
@click.argument("type_", metavar="TYPE")
@click.argument("payload", default="{}", metavar="[PAYLOAD|-|@FILE]")
@click.option("--key", callback=_key, help="Idempotency key: the same key and body again give the same job.")
@click.pass_obj
def submit(installation: Installation, type_: str, payload: str, key: str | None) -> None:
    """Submit a job of TYPE and print it as JSON.

    PAYLOAD is JSON; `-` reads it from stdin, @FILE from a file. Without one it is {}.
    """
    # As written, and not as decoded and encoded again: numbers keep their digits.
    body = f'{{"type": {json.dumps(type_)}, "payload": {_payload(payload)}}}'.encode()
    headers = {"Content-Type": "application/json"} | ({"Idempotency-Key": key} if key else {})
    try:
        job, answer = call(installation.api, "POST", "/jobs", body=body, headers=headers)
    except NoAnswerError as error:
        raise ExplainedError(
            "no answer came back, so whether the job was accepted is unknown",
            remedy=_REPEAT if key else _REPEAT_UNKEYED,
        ) from error
    show_json(job)
    if answer.headers.get("idempotent-replayed") == "true":
        say("This key was used before; this is the job that it made.")


def _payload(argument: str) -> str:
    """The text of the payload, which is JSON."""
    text = _read(argument)
    try:
        json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise click.BadParameter(f"not JSON: {error}", param_hint="PAYLOAD") from error
    return text


def _read(argument: str) -> str:
    try:
        if argument == "-":
            if sys.stdin.isatty():
                say("Reading the payload from the terminal; Ctrl-D ends it.")
            return sys.stdin.buffer.read().decode("utf-8-sig")
        if argument.startswith("@"):
            return Path(argument[1:]).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise click.BadParameter(f"cannot read it: {error}", param_hint="PAYLOAD") from error
    except UnicodeDecodeError as error:
        raise click.BadParameter(f"not UTF-8: {error}", param_hint="PAYLOAD") from error
    return argument


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
