"""The app, deployed on an embedded AWS of its own: `with deployed() as app:` is all a demo or a test has to say."""

import contextlib
import json
import shutil
from collections.abc import Iterator

from rich.console import Console

from tidemill.local import emulator, environment, instance
from tidemill.local.cdk_deploy import deploy
from tidemill.local.deployed_app import App, CommandError
from tidemill.local.signed_caller import Caller

__all__ = ["App", "CommandError", "bare", "bring_down", "bring_up", "deployed", "find_up"]


@contextlib.contextmanager
def bare() -> Iterator[Caller]:
    """An emulator with nothing on it, and who may do everything there. Raises EmulatorError."""
    with instance.owned() as folder, emulator.tied(folder) as running:
        yield Caller(running.endpoint, environment.root_keys(folder.name))


@contextlib.contextmanager
def deployed(console: Console | None = None) -> Iterator[App]:
    """The app on an emulator of its own, for as long as the block runs and not longer, however it ends.

    Raises EmulatorError and DeployError.
    """
    with instance.owned() as folder, emulator.tied(folder) as running:
        outputs = deploy(folder, running.endpoint, environment.root_keys(folder.name), console or Console(stderr=True))
        yield App(folder, running.endpoint, outputs)


def find_up() -> App | None:
    """The app that `bring_up` left running, if it still does."""
    running = emulator.find(instance.UP)
    outputs = instance.UP / "outputs.json"
    if not running or not outputs.is_file():
        return None
    return App(instance.UP, running.endpoint, json.loads(outputs.read_text()))


def bring_up(console: Console) -> App:
    """The app as it is now, on an emulator that is left running; on the one that runs already, with its jobs, if any.

    Raises as `deployed`.
    """
    with instance.up() as folder:
        if app := find_up():
            outputs = deploy(folder, app.endpoint, environment.root_keys(folder.name), console)
            return App(folder, app.endpoint, outputs)
        emulator.stop(folder)
        shutil.rmtree(folder, ignore_errors=True)
        running = emulator.leave_running(folder)
        try:
            outputs = deploy(folder, running.endpoint, environment.root_keys(folder.name), console)
        except BaseException:
            emulator.stop(folder)
            raise
        return App(folder, running.endpoint, outputs)


def bring_down() -> bool:
    """End what `bring_up` left and remove its state. False if there was nothing."""
    with instance.up() as folder:
        was_there = folder.exists()
        emulator.stop(folder)
        shutil.rmtree(folder, ignore_errors=True)
        return was_there
