"""`python -m tidemill.local.alarm_watch FOLDER` watches the alarms of the instance in this folder until it ends."""

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Final

from botocore.exceptions import BotoCoreError, ClientError
from rich.console import Console

from tidemill.domain.errors import TidemillError
from tidemill.local import cdk_deploy, emulator, environment
from tidemill.local.alarm_watch.failed_invocations import FailedInvocations
from tidemill.local.alarm_watch.installed_alarms import put_missing, read_installed
from tidemill.local.alarm_watch.watch import MINUTE_SECONDS, Watch, sources_of
from tidemill.local.signed_caller import Caller
from tidemill.local.terminal_command import run
from tidemill.names import Output

#: The stage `local` with the alarms that the embedded AWS cannot create from a template.
WITH_ALL_ALARMS: Final = ("metric_math=on",)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tidemill.local.alarm_watch")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--minute-seconds", type=float, default=MINUTE_SECONDS)
    arguments = parser.parse_args()
    return run(lambda console: _watch(arguments.folder, arguments.minute_seconds, console))


def _watch(folder: Path, minute_seconds: float, console: Console) -> int:
    """Ends when the emulator has ended."""
    assembly = folder / "alarms.out"
    cdk_deploy.synth(cdk_deploy.STAGE, assembly, console, context=WITH_ALL_ALARMS, log=folder / "alarms-synth.log")
    running = emulator.find(folder)
    if not running:
        return 0
    client = Caller(running.endpoint, environment.root_keys(folder.name)).client
    outputs = json.loads((folder / "outputs-by-stack.json").read_text())
    templates = {stack: json.loads((assembly / f"{stack}.template.json").read_text()) for stack in outputs}
    alarms = read_installed(templates, client("cloudformation"))
    put_missing(client("cloudwatch"), alarms)
    (page_topic,) = (each[Output.ALARM_TOPIC] for each in outputs.values() if Output.ALARM_TOPIC in each)
    watch = Watch(
        alarms,
        client,
        sources=sources_of(outputs),
        failed=FailedInvocations(folder / "emulator.log"),
        page_topic=page_topic,
        minute_seconds=minute_seconds,
        started_at=time.time(),
    )
    print(f"watching {len(alarms)} alarms; {watch.firing} of them fire", flush=True)
    while emulator.find(folder):
        try:
            for line in watch.tick(time.time()):
                print(line, flush=True)
        except (BotoCoreError, ClientError, TidemillError) as error:
            # The app may be in the middle of a deployment. The next minute evaluates again.
            print(f"not evaluated: {error}", flush=True)
        time.sleep(minute_seconds - time.time() % minute_seconds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
