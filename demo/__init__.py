"""`make demo`: real clicks and misbehaving jobs through the really deployed app, and every figure reconciled."""

import sys
import zlib
from pathlib import Path
from typing import Final

from rich.console import Console

from demo.access_log import Click, read
from demo.observe import StuckError
from demo.scenario import Scenario
from demo.screen import Screen
from tidemill.local.lifecycle import deployed

SAMPLE: Final = Path(__file__).parent / "sample.log"


def main(*, log: Path | None = None, limit: int | None = None) -> int:
    """0 only if every figure reconciles."""
    path = log or SAMPLE
    try:
        entries = list(read(path, limit=limit))
    except (OSError, EOFError, zlib.error) as error:
        return _refused(f"cannot read the log {path}: {error}; say where one is with LOG=path/to/access.log")
    if not any(isinstance(entry, Click) for entry in entries):
        return _refused(f"no line of {path} is a click (a GET); is it an access log in combined format?")
    console = Console()
    screen = Screen(console)
    with deployed(console) as app:
        scenario = Scenario(app, screen)
        try:
            scenario.play(entries, of=path.name)
        except StuckError as error:
            screen.stuck(error)
            return 1
    screen.verdict(scenario.checks)
    return 0 if scenario.checks.hold else 1


def _refused(reason: str) -> int:
    sys.stderr.write(f"tidemill: {reason}\n")
    return 1
