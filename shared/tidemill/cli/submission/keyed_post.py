"""Posts a new job or event to the API, with an idempotency key that makes the command safe to repeat."""

import re
from collections.abc import Mapping
from typing import Any, Final

import click

from tidemill.aws.http_client import NoAnswerError
from tidemill.cli.api_call import call
from tidemill.cli.errors import CommandError
from tidemill.cli.installation import Installation
from tidemill.cli.output import say

#: The format that the API accepts.
_KEY: Final = re.compile(r"[!-~]{1,255}")


def checked_key(_: click.Context, __: click.Parameter, key: str | None) -> str | None:
    """The callback of the option."""
    if key is not None and not _KEY.fullmatch(key):
        raise click.BadParameter("invalid key: use 1 to 255 visible ASCII characters without spaces")
    return key


def posted(installation: Installation, path: str, members: Mapping[str, str], *, made: str, key: str | None) -> Any:
    """The job that the API answers with. `members` has the JSON text of each member; `made` says what they make.

    The texts are sent as written: decoding and encoding them again could change the digits of numbers.
    """
    body = "{" + ", ".join(f'"{name}": {text}' for name, text in members.items()) + "}"
    headers = {"Content-Type": "application/json"} | ({"Idempotency-Key": key} if key else {})
    try:
        job, answer = call(installation.api, "POST", path, body=body.encode(), headers=headers)
    except NoAnswerError as error:
        raise CommandError(
            f"the API did not respond; it is unknown whether the {made} was accepted",
            remedy=f"Run the command again: the same key creates no second {made}."
            if key
            else f"Running the command again may create a second {made}. A --key prevents that.",
        ) from error
    if answer.headers.get("idempotent-replayed") == "true":
        say("The API returned an existing job: the key was used before, or the period has a job already.")
    if answer.headers.get("debounced") == "true":
        say("The submission became part of an earlier job, which has not begun.")
    return job
