"""`make demo`: sends real clicks and misbehaving jobs through the deployed app, and checks every figure."""

import sys
import zlib
from pathlib import Path
from typing import Final

from rich.console import Console

from demo.access_log import Click, read
from demo.observe import NoProgressError
from demo.scenario import Scenario
from demo.screen import Screen
from tidemill.local.lifecycle import deployed

SAMPLE: Final = Path(__file__).parent / "sample.log"


def main(*, log: Path | None = None, limit: int | None = None) -> int:
    """Play the first `limit` lines of `log`. Returns 0 only if every figure is right."""
    path = log or SAMPLE
    try:
        entries = list(read(path, limit=limit))
    except (OSError, EOFError, zlib.error) as error:
        return _refused(f"cannot read the access log {path}: {error}; name another one with LOG=path/to/access.log")
    if not any(isinstance(entry, Click) for entry in entries):
        return _refused(
            f"{path} contains no GET request; name an access log in combined format with LOG=path/to/access.log"
        )
    console = Console()
    screen = Screen(console)
    with deployed(console) as app:
        scenario = Scenario(app, screen)
        try:
            scenario.play(entries, log_name=path.name)
        except NoProgressError as error:
            screen.no_progress(error)
            return 1
    screen.verdict(scenario.checks)
    return 0 if scenario.checks.all_hold else 1


def _refused(reason: str) -> int:
    sys.stderr.write(f"tidemill: {reason}\n")
    return 1
