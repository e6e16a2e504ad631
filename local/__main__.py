"""What `make` calls once everything is set up: `python -m local up|down|demo|figures|synth|test`."""

import argparse
import importlib
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

from rich.console import Console

from local import environment, stack
from local.deploy import DeployError, synth
from local.emulator import EmulatorError
from local.instance import UP
from local.paths import ROOT, VENV
from local.stack import App, CommandError
from local.waiting import WaitError

INTERRUPTED: Final = 130
#: What the examples in the documents call the URL of the API.
API_URL: Final = "TIDEMILL_API_URL"
#: Each is a module of `local.figures` that measures and prints.
FIGURES: Final = ("flood", "groups")


def main() -> int:
    """Exit codes: 0 done, 1 failed and said why, 2 called wrongly, 130 interrupted."""
    parser = _parser()
    arguments, rest = parser.parse_known_args()
    if rest and arguments.command != "test":
        parser.error(f"nobody knows what {rest[0]} means")
    arguments.rest = rest
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    clean = environment.without_aws(os.environ)
    os.environ.clear()
    os.environ.update(clean)
    console = Console(stderr=True)
    try:
        return int(COMMANDS[arguments.command](arguments, console))
    except (EmulatorError, DeployError, CommandError, WaitError) as error:
        console.print(f"tidemill: {error}", style="red", markup=False, highlight=False, soft_wrap=True)
        return 1
    except KeyboardInterrupt:
        console.print("\ntidemill: interrupted; what was started has been stopped", highlight=False)
        return INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m local")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("up")
    commands.add_parser("down")
    demo = commands.add_parser("demo")
    demo.add_argument("--log", type=Path, help="an access log in combined format, gzip too")
    demo.add_argument("--limit", type=_count, help="take so many lines of it")
    figures = commands.add_parser("figures")
    figures.add_argument("which", nargs="?", choices=FIGURES, help="one of them; without it, all")
    synth_ = commands.add_parser("synth")
    synth_.add_argument("--stage", default="dev")
    synth_.add_argument("--context", action="append", default=[], metavar="NAME=VALUE")
    commands.add_parser("test", help="hands all its arguments to pytest")
    return parser


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of lines")
    return int(text)


def _up(_: argparse.Namespace, console: Console) -> int:
    was_up = stack.find_up()
    if was_up:
        console.print("the app is already up; deploying it as it is now, its jobs stay", highlight=False)
    app = stack.bring_up(console)
    variables = UP / "env"
    variables.write_text(_exports(app))
    console.print(f"the app is up at {app.endpoint}", highlight=False)
    # In quotes: a shell would take the stage `$default` for a variable of its own.
    print(f"jobs       '{app.api_url}/jobs'")
    print(f"shortener  '{app.shortener_url}/links'")
    console.print(
        f"\nto use it:     source {shlex.quote(str(variables.relative_to(ROOT)))} && .venv/bin/tidemill status\n"
        "to change it:  make up again\n"
        f"its log:       {shlex.quote(str((UP / 'emulator.log').relative_to(ROOT)))}\n"
        "to end it:     make down",
        highlight=False,
        soft_wrap=True,
    )
    return 0


def _exports(app: App) -> str:
    """Lines for a shell: where the API is, the keys of an ordinary role on it, and nothing of a real profile."""
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
    console.print("stopped, and its state is removed" if stack.bring_down() else "nothing was up", highlight=False)
    return 0


def _demo(arguments: argparse.Namespace, _: Console) -> int:
    return int(importlib.import_module("local.demo").main(log=arguments.log, limit=arguments.limit))


def _figures(arguments: argparse.Namespace, _: Console) -> int:
    for which in [arguments.which] if arguments.which else FIGURES:
        importlib.import_module(f"local.figures.{which}").main()
    return 0


def _synth(arguments: argparse.Namespace, console: Console) -> int:
    output = ROOT / "cdk.out"
    synth(arguments.stage, output, console, context=arguments.context)
    print(output.relative_to(ROOT))
    return 0


def _test(arguments: argparse.Namespace, _: Console) -> int:
    """Run pytest without the person's AWS settings, whatever a test imports."""
    return subprocess.call([str(VENV / "bin" / "python"), "-m", "pytest", *arguments.rest], cwd=ROOT)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


COMMANDS: Final = {"up": _up, "down": _down, "demo": _demo, "figures": _figures, "synth": _synth, "test": _test}

if __name__ == "__main__":
    sys.exit(main())
