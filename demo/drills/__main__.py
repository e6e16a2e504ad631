"""`python -m demo.drills [NAME]` deploys the app to an embedded AWS and runs one drill, or all of them."""

import argparse
import sys
from collections.abc import Sequence
from typing import Final

from rich.console import Console

from demo.drills import runbook, runner
from demo.drills.embedded_stage import MINUTE_SECONDS, EmbeddedStage, watched
from demo.drills.errors import DrillError, NotRecoveredError, SlowMachineError
from demo.drills.incidents import DRILLS
from demo.drills.table import table
from tidemill.local.lifecycle import CommandError, deployed
from tidemill.local.terminal_command import run
from tidemill.local.wait import WaitError

#: The exit code where the machine is too slow for the drill.
TOO_SLOW: Final = 3


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m demo.drills")
    parser.add_argument("names", nargs="*", choices=["all", *DRILLS], default="all", help="the default is all")
    parser.add_argument("--minute-seconds", type=float, default=MINUTE_SECONDS, help="of the alarms")
    parser.add_argument(
        "--without-fix", action="store_true", help="run no command of the runbook, and fail if the stage recovers"
    )
    arguments = parser.parse_args()
    names = list(DRILLS) if "all" in arguments.names else arguments.names
    drill = _without_fix if arguments.without_fix else _drill
    return run(lambda console: drill(names, console, minute_seconds=arguments.minute_seconds))


def _drill(names: Sequence[str], console: Console, *, minute_seconds: float) -> int:
    with deployed(console) as app, watched(app, minute_seconds=minute_seconds) as watch:
        stage = EmbeddedStage(app)
        reports: list[runner.Report] = []
        code = 0
        for name in names:
            console.print(f"drill {name}", highlight=False)
            drill = DRILLS[name](stage)
            try:
                reports.append(runner.run(drill, watch, runbook.fix(name, heading=drill.heading)))
            except (DrillError, CommandError, WaitError) as error:
                code = _failed(name, error, console)
                break
        Console().print(table(reports, minute_seconds=minute_seconds))
    return code


def _without_fix(names: Sequence[str], console: Console, *, minute_seconds: float) -> int:
    recovered = []
    for name in names:
        # The incident stays, so each drill has a stage of its own.
        with deployed(console) as app, watched(app, minute_seconds=minute_seconds) as watch:
            console.print(f"drill {name}, without its fix", highlight=False)
            try:
                runner.run(DRILLS[name](EmbeddedStage(app)), watch, ())
            except NotRecoveredError as error:
                Console().print(f"{name}: {error}", markup=False, soft_wrap=True)
            except SlowMachineError as error:
                return _failed(name, error, console)
            else:
                recovered.append(name)
    if recovered:
        console.print(f"tidemill: recovered without a fix: {', '.join(recovered)}", style="red", markup=False)
    return 1 if recovered else 0


def _failed(name: str, error: Exception, console: Console) -> int:
    """Print it. Returns the exit code."""
    console.print(f"tidemill: drill {name}: {error}", style="red", markup=False, soft_wrap=True)
    return TOO_SLOW if isinstance(error, SlowMachineError) else 1


if __name__ == "__main__":
    sys.exit(main())
