"""Runs a command on the embedded AWS for a user at a terminal: clean environment, clear errors."""

import os
from collections.abc import Callable
from typing import Final

from rich.console import Console

from tidemill.local import environment
from tidemill.local.cdk_deploy import DeployError
from tidemill.local.deployed_app import CommandError
from tidemill.local.emulator import EmulatorError
from tidemill.local.paths import NotSetUpError
from tidemill.local.wait import WaitError
from tidemill.system import interruptions, standard_streams

INTERRUPTED: Final = 130


def run(command: Callable[[Console], int]) -> int:
    """The exit code: that of `command`, 1 after an error that was printed, 130 when interrupted.

    SIGTERM and SIGHUP end it as Ctrl-C does. The command sees none of the user's AWS settings.
    """
    standard_streams.open_missing()
    interruptions.end_as_by_ctrl_c()
    clean = environment.without_aws(os.environ)
    os.environ.clear()
    os.environ.update(clean)
    console = Console(stderr=True)
    try:
        return command(console)
    except (NotSetUpError, EmulatorError, DeployError, CommandError, WaitError) as error:
        console.print(f"tidemill: {error}", style="red", markup=False, highlight=False, soft_wrap=True)
        return 1
    except KeyboardInterrupt:
        console.print("\ntidemill: interrupted; all started processes are stopped", highlight=False)
        return INTERRUPTED
