"""Starts and stops the app on an embedded AWS. A demo or a test needs only `with deployed() as app:`."""

import contextlib
import json
import shutil
from collections.abc import Iterator

from rich.console import Console

from tidemill.local import emulator, environment, instance
from tidemill.local.alarm_watch import process
from tidemill.local.alarm_watch.watch import MINUTE_SECONDS
from tidemill.local.cdk_deploy import deploy
from tidemill.local.deployed_app import App, CommandError
from tidemill.local.paths import require_app_folder, require_set_up
from tidemill.local.signed_caller import Caller

__all__ = ["App", "CommandError", "bare", "bring_down", "bring_up", "deployed", "find_up"]


@contextlib.contextmanager
def bare() -> Iterator[Caller]:
    """An empty emulator, as a caller that may do everything there. Raises EmulatorError and NotSetUpError."""
    require_set_up()
    with instance.owned() as folder, emulator.tied(folder) as running:
        yield Caller(running.endpoint, environment.root_keys(folder.name))


@contextlib.contextmanager
def deployed(console: Console | None = None) -> Iterator[App]:
    """The app on its own emulator during the block. The emulator ends with the block, also after an error.

    Raises EmulatorError, DeployError and NotSetUpError.
    """
    require_set_up()
    with instance.owned() as folder, emulator.tied(folder) as running:
        outputs = deploy(folder, running.endpoint, environment.root_keys(folder.name), console or Console(stderr=True))
        yield App(folder, running.endpoint, outputs)


def find_up() -> App | None:
    """The app that `bring_up` left running, or None if it does not run."""
    running = emulator.find(instance.UP)
    outputs = instance.UP / "outputs.json"
    if not running or not outputs.is_file():
        return None
    return App(instance.UP, running.endpoint, json.loads(outputs.read_text()))


def has_stopped() -> bool:
    """Whether an app of `bring_up` no longer runs, without `bring_down`: a reboot, say. Its state was in memory."""
    return (instance.UP / "outputs.json").is_file() and find_up() is None


def bring_up(console: Console, *, minute_seconds: float = MINUTE_SECONDS) -> App:
    """Deploy the current app to an emulator that stays running. Reuses a running emulator, with its jobs.

    A watch of its alarms runs beside it; `minute_seconds` is the length of their minutes. Raises as `deployed`.
    """
    require_set_up()
    with instance.up(console) as folder:
        if app := find_up():
            outputs = deploy(folder, app.endpoint, environment.root_keys(folder.name), console)
            process.restart(folder, minute_seconds=minute_seconds)
            return App(folder, app.endpoint, outputs)
        emulator.stop(folder)
        shutil.rmtree(folder, ignore_errors=True)
        running = emulator.leave_running(folder)
        try:
            outputs = deploy(folder, running.endpoint, environment.root_keys(folder.name), console)
        except BaseException:
            emulator.stop(folder)
            raise
        process.restart(folder, minute_seconds=minute_seconds)
        return App(folder, running.endpoint, outputs)


def bring_down(console: Console) -> bool:
    """Stop the app of `bring_up` and remove its state. False if it did not exist.

    Raises NotSetUpError and WaitError.
    """
    require_app_folder()
    with instance.up(console) as folder:
        was_there = folder.exists()
        emulator.stop(folder)
        shutil.rmtree(folder, ignore_errors=True)
        return was_there
