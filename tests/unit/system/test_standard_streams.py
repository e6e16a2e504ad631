"""Daemons start programs with closed standard streams. Each program runs as with /dev/null instead."""

import subprocess
import sys
from typing import Final

import pytest

_COMMAND: Final = "import sys; from tidemill.cli.main import main; sys.argv = ['tidemill', '--version']; main()"
_LOCAL: Final = """
import sys
from tidemill.local.terminal_command import run

def command(console):
    console.print("to standard error")
    print(f"to standard output, {len(sys.stdin.read())} characters")
    # A file that the program opens must not take the place of a standard stream.
    return int(open(sys.executable).fileno() <= 2)

sys.exit(run(command))
"""


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize(
    ("program", "written"),
    [(_COMMAND, b"tidemill "), (_LOCAL, b"to standard output, 0")],
    ids=["command line", "local stage"],
)
def test_a_program_runs_without_a_standard_stream(program: str, written: bytes, closed: str) -> None:
    shell = ["sh", "-c", f'exec "$0" -c "$1" {closed}', sys.executable, program]

    run = subprocess.run(shell, capture_output=True, check=False, stdin=subprocess.DEVNULL)

    assert (run.returncode, b"Traceback" in run.stdout + run.stderr) == (0, False)
    assert run.stdout.startswith(b"" if ">&-" in closed.split() else written)
