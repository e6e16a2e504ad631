"""Run pytest on every core, without the AWS settings of the caller: `python -m tools.run_tests [--fast] ARGUMENTS`.

`--fast` leaves out the tests that need the embedded AWS and those marked as slow. All other arguments are pytest's.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from typing import Final

from tidemill.local import environment
from tools.paths import ROOT

FAST: Final = ("-m", "not e2e and not emulator and not slow")
#: More processes would wait for the end-to-end tests, which share one.
MOST_PROCESSES: Final = 5
#: What a run of all tests prints at its end.
SLOWEST: Final = ("--durations", "20", "--durations-min", "1")
#: Options that choose some of the tests, look into a test, or set the number of processes. Starting processes and
#: collecting the tests in each takes longer than a few tests do.
SHORT_OPTIONS: Final = ("-k", "-m", "-n", "-s", "-x")
LONG_OPTIONS: Final = frozenset(
    ("--co", "--collect-only", "--deselect", "--last-failed", "--lf", "--numprocesses", "--pdb", "--trace")
)


def pytest_arguments(arguments: Sequence[str]) -> list[str]:
    """The arguments of pytest for the arguments of this program."""
    fast = "--fast" in arguments
    chosen = [argument for argument in arguments if argument != "--fast"]
    return [*_whole_run(chosen, fast=fast), *(FAST if fast else ()), *chosen]


def _whole_run(arguments: Sequence[str], *, fast: bool) -> Sequence[str]:
    if any(_chooses(argument) for argument in arguments):
        return ()
    # One for each core, and one for the end-to-end tests, which mostly wait.
    processes = (os.cpu_count() or 1) + (not fast)
    return ("--numprocesses", str(min(processes, MOST_PROCESSES)), *SLOWEST)


def _chooses(argument: str) -> bool:
    if argument.startswith("-"):
        return argument.startswith(SHORT_OPTIONS) or argument.partition("=")[0] in LONG_OPTIONS
    return (ROOT / argument.partition("::")[0]).exists()


def main() -> int:
    """Return the exit code of pytest."""
    # A shell starts jobs in the background with Ctrl-C ignored, and so would every command that the tests interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    clean = environment.without_aws(os.environ)
    command = [sys.executable, "-m", "pytest", *pytest_arguments(sys.argv[1:])]
    return subprocess.call(command, cwd=ROOT, env=clean)


if __name__ == "__main__":
    sys.exit(main())
