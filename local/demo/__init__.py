"""`make demo`: real clicks and misbehaving jobs through the really deployed app, and every figure reconciled."""

import sys
from pathlib import Path
from typing import Final

from rich.console import Console

from local.demo.observe import StuckError
from local.demo.scenario import Scenario
from local.demo.screen import Screen
from local.stack import deployed

SAMPLE: Final = Path(__file__).parent / "sample.log"


def main(*, log: Path | None = None, limit: int | None = None) -> int:
    """0 only if every figure reconciles."""
    path = log or SAMPLE
    if not path.is_file():
        sys.stderr.write(f"millrace: there is no log at {path}; say where it is with LOG=path/to/access.log\n")
        return 1
    console = Console()
    screen = Screen(console)
    with deployed(console) as app:
        scenario = Scenario(app, screen)
        try:
            scenario.play(path, limit)
        except StuckError as error:
            screen.stuck(error)
            return 1
    screen.verdict(scenario.checks)
    return 0 if scenario.checks.hold else 1
