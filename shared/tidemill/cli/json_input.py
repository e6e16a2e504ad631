"""Reads JSON from an argument, stdin or a file. Checks it, and keeps the text as written."""

import json
import sys
from pathlib import Path
from typing import Any, NoReturn

import click

from tidemill.cli.output import say


def read_source(argument: str, *, hint: str = "PAYLOAD") -> str:
    """The JSON text of a payload. `-` reads stdin, `@FILE` reads a file. `hint` as in `read_text`."""
    text = read_text(argument.removeprefix("@"), hint=hint) if _names_a_source(argument) else argument
    decoded(text, hint=hint)
    return text


def read_text(name: str, *, hint: str) -> str:
    """The text of a file, or of stdin for `-`. `hint` names the parameter in error messages."""
    try:
        if name == "-":
            if sys.stdin.isatty():
                say("Reading from the terminal; press Ctrl-D to finish.")
            return sys.stdin.buffer.read().decode("utf-8-sig")
        return Path(name).read_text(encoding="utf-8-sig")
    except OSError as error:
        raise click.BadParameter(f"cannot read the file: {error}", param_hint=hint) from error
    except UnicodeDecodeError as error:
        raise click.BadParameter(f"not valid UTF-8: {error}", param_hint=hint) from error


def decoded(text: str, *, hint: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise click.BadParameter(f"not valid JSON: {error}", param_hint=hint) from error


def _names_a_source(argument: str) -> bool:
    return argument == "-" or argument.startswith("@")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON value")
