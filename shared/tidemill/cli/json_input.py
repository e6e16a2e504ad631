"""JSON that a person hands over: as an argument, on stdin or in a file; sent on as written, checked on the way."""

import json
import sys
from pathlib import Path
from typing import Any, NoReturn

import click

from tidemill.cli.output import say


def read_payload(argument: str) -> str:
    """The text of a payload, which is JSON. `-` stands for stdin, `@FILE` for a file."""
    text = read_text(argument.removeprefix("@"), hint="PAYLOAD") if _elsewhere(argument) else argument
    decoded(text, hint="PAYLOAD")
    return text


def read_text(name: str, *, hint: str) -> str:
    """A file's text, or that of stdin for `-`."""
    try:
        if name == "-":
            if sys.stdin.isatty():
                say("Reading from the terminal; Ctrl-D ends it.")
            return sys.stdin.buffer.read().decode("utf-8-sig")
        return Path(name).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise click.BadParameter(f"cannot read it: {error}", param_hint=hint) from error
    except UnicodeDecodeError as error:
        raise click.BadParameter(f"not UTF-8: {error}", param_hint=hint) from error


def decoded(text: str, *, hint: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise click.BadParameter(f"not JSON: {error}", param_hint=hint) from error


def _elsewhere(argument: str) -> bool:
    return argument == "-" or argument.startswith("@")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")
