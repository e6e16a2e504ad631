"""The embedded AWS from the command line: `python -m tidemill.local up|down|synth`."""

import argparse
import shlex
import sys
from pathlib import Path
from typing import Final

from rich.console import Console
from rich.table import Table

from tidemill.cdk import template_limits
from tidemill.local import lifecycle
from tidemill.local.alarm_watch import process
from tidemill.local.alarm_watch.watch import MINUTE_SECONDS
from tidemill.local.cdk_deploy import synth
from tidemill.local.deployed_app import App
from tidemill.local.instance import UP
from tidemill.local.paths import ROOT
from tidemill.local.terminal_command import run
from tidemill.names import Output
from tidemill.operator.deployments import synthesised_app

#: The variable that holds the URL of the API in the examples of the documents.
API_URL: Final = "TIDEMILL_API_URL"


def main() -> int:
    """Exit codes: 0 done, 1 failed with a printed reason, 2 invalid arguments, 130 interrupted."""
    arguments = _parser().parse_args()
    return run(lambda console: int(COMMANDS[arguments.command](arguments, console)))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tidemill.local")
    commands = parser.add_subparsers(dest="command", required=True)
    up = commands.add_parser("up")
    up.add_argument("--minute-seconds", type=_seconds, default=MINUTE_SECONDS, help="the length of a minute of alarms")
    commands.add_parser("down")
    synth_ = commands.add_parser("synth")
    synth_.add_argument("--stage", default="dev")
    synth_.add_argument("--context", action="append", default=[], metavar="NAME=VALUE")
    return parser


def _seconds(text: str) -> float:
    if not text.isdecimal() or not 1 <= int(text) <= MINUTE_SECONDS:
        raise argparse.ArgumentTypeError(f"invalid minute {text!r}: use a number of seconds from 1 to 60")
    return float(text)


def _up(arguments: argparse.Namespace, console: Console) -> int:
    was_up = lifecycle.find_up()
    if was_up:
        console.print("the app is already up; deploying its current code; its jobs stay", highlight=False)
    if lifecycle.has_stopped():
        console.print(
            "the app was up and has stopped: its jobs are lost, and address and credentials are new; "
            "source the file again in each shell",
            style="yellow",
            highlight=False,
        )
    app = lifecycle.bring_up(console, minute_seconds=arguments.minute_seconds)
    variables = UP / "env"
    variables.write_text(_exports(app))
    console.print(f"the app is up at {app.endpoint}", highlight=False)
    # In quotes, since a shell would replace `$default` as a variable.
    for output in sorted(name for name in app.outputs if name.endswith(Output.API_ID)):
        api = output.removesuffix(Output.API_ID).lower() or "jobs"
        print(f"{api:<10} '{app.url_of(output)}'")
    console.print(
        f"\nto use it:     source {shlex.quote(str(variables.relative_to(ROOT)))} && .venv/bin/tidemill status\n"
        "to change it:  make up again\n"
        f"its log:       {shlex.quote(str((UP / 'emulator.log').relative_to(ROOT)))}\n"
        f"its alarms:    tail -f {shlex.quote(str((UP / process.LOG).relative_to(ROOT)))}\n"
        "to end it:     make down",
        highlight=False,
        soft_wrap=True,
    )
    return 0


def _exports(app: App) -> str:
    """Shell lines that set the URL of the API and the keys of an ordinary role, and unset any real AWS profile."""
    variables = {
        name: value
        for name, value in sorted(app.caller.environment().items())
        if name.startswith("AWS_") or name.upper() == "NO_PROXY"
    }
    variables[API_URL] = app.api_url
    lines = ["unset AWS_PROFILE AWS_DEFAULT_PROFILE AWS_CA_BUNDLE"]
    lines += [f"export {name}={shlex.quote(value)}" for name, value in variables.items()]
    return "\n".join([*lines, ""])


def _down(_: argparse.Namespace, console: Console) -> int:
    was_up = lifecycle.bring_down(console)
    console.print("stopped, and its state removed" if was_up else "nothing was up", highlight=False)
    return 0


def _synth(arguments: argparse.Namespace, console: Console) -> int:
    output = ROOT / "cdk.out"
    synth(arguments.stage, output, console, context=arguments.context)
    _show_limits(output, console)
    print(output.relative_to(ROOT))
    return 0


def _show_limits(assembly: Path, console: Console) -> None:
    table = Table("limit of AWS", "today", "at most", "of", title="What grows with an app")
    for stack, each in template_limits.largest(synthesised_app.read(assembly).templates):
        table.add_row(each.limit.text, f"{each.value:,}", f"{each.limit.most:,}", f"{stack} {each.resource}".rstrip())
    console.print(table)


COMMANDS: Final = {"up": _up, "down": _down, "synth": _synth}

if __name__ == "__main__":
    sys.exit(main())
