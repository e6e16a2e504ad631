"""`python -m tidemill.local.alarm_watch FOLDER` watches the alarms of the instance in this folder until it ends."""

import argparse
import sys
import time
from pathlib import Path

from botocore.exceptions import BotoCoreError, ClientError
from rich.console import Console

from tidemill.domain.errors import TidemillError
from tidemill.local import emulator, environment, processes
from tidemill.local.alarm_watch.setup import templates_with_all_alarms, watch_of
from tidemill.local.alarm_watch.watch import MINUTE_SECONDS, Watch
from tidemill.local.signed_caller import Caller
from tidemill.local.terminal_command import run


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tidemill.local.alarm_watch")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--minute-seconds", type=float, default=MINUTE_SECONDS)
    arguments = parser.parse_args()
    return run(lambda console: _watch(arguments.folder, arguments.minute_seconds, console))


def _watch(folder: Path, minute_seconds: float, console: Console) -> int:
    """Ends when the emulator has ended."""
    templates = templates_with_all_alarms(folder, console)
    running = emulator.find(folder)
    if not running:
        return 0
    client = Caller(running.endpoint, environment.root_keys(folder.name)).client
    watch = watch_of(folder, client, templates, minute_seconds=minute_seconds)
    print(f"watching {len(watch.states)} alarms", flush=True)
    evaluate_until_ended(watch, folder, minute_seconds)
    return 0


def evaluate_until_ended(watch: Watch, folder: Path, minute_seconds: float) -> None:
    """Once a minute, while the process of the emulator exists: on a busy machine, it may not answer for a while."""
    while processes.emulators(folder):
        try:
            for line in watch.tick(time.time()):
                print(line, flush=True)
        except (BotoCoreError, ClientError, TidemillError) as error:
            # The app may be in the middle of a deployment. The next minute evaluates again.
            print(f"not evaluated: {error}", flush=True)
        time.sleep(minute_seconds - time.time() % minute_seconds)


if __name__ == "__main__":
    sys.exit(main())
