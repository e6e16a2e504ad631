"""Lines reach the files of the standard streams after any harm to the streams, and no other file."""

import io
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TextIO

import pytest

from tidemill.telemetry.line_output import LineOutput

ROOT: Final = Path(__file__).parents[3]
_LINES: Final = """
import builtins, logging, os, sys, warnings
from tidemill.telemetry import handler_output
from tidemill.telemetry.outcome_log import configuration_not_read

configuration_not_read(OSError("before"))
handler_output.install()
{harm}
configuration_not_read(OSError("after"))
"""
#: What handlers do to their process.
HARM: Final = {
    "logging is disabled": "logging.disable(logging.CRITICAL)",
    "a record factory fails": "logging.setLogRecordFactory(None)",
    "levels have other names": "logging.addLevelName(logging.WARNING, 'W')",
    "the root has no handlers": "logging.getLogger().handlers.clear(); logging.shutdown()",
    "warnings are captured": "logging.captureWarnings(True)",
    "print is replaced": "builtins.print = None",
    "output is closed": "sys.stdout.close(); sys.__stdout__.close()",
    "both streams are closed": "sys.__stdout__.close(); sys.__stderr__.close()",
    "output is detached": "sys.stdout.detach()",
    "output is None": "sys.stdout = sys.stderr = None",
    "descriptors are closed": "os.close(1); os.close(2)",
    "another file is 1": "os.close(1); os.open(os.devnull, os.O_WRONLY)",
    "all copies are closed": "os.closerange(3, 100)",
    "no variables": "os.environ.clear()",
}


@pytest.mark.parametrize("harm", HARM)
def test_a_line_of_the_engine_is_written_after(harm: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "shared")}
    command = [sys.executable, "-c", _LINES.format(harm=HARM[harm])]

    run = subprocess.run(command, env=environment, check=False, capture_output=True, text=True)

    assert run.stdout.count('"runtime configuration not read"') == 2, run.stderr
    assert run.stdout.count('"level":"WARNING"') == 2


@pytest.fixture
def file(tmp_path: Path) -> Iterator[TextIO]:
    with (tmp_path / "output").open("w") as opened:
        yield opened


def test_a_line_goes_to_the_next_stream_or_is_dropped_and_counted(file: TextIO) -> None:
    first, second = io.StringIO(), io.StringIO()
    output = LineOutput(first, second)
    output.write("one\n")
    first.close()
    output.write("two\n")
    assert (second.getvalue(), output.dropped) == ("two\n", 0)
    second.close()
    output.write("three\n")
    assert output.dropped == 1


def test_a_line_is_not_written_into_a_file_that_took_a_number(file: TextIO, tmp_path: Path) -> None:
    output = LineOutput(file)
    assert output.intact()
    other = tmp_path / "other"
    opened = os.open(other, os.O_WRONLY | os.O_CREAT)
    for number, _ in output._files:
        os.dup2(opened, number)
    output.write("secret\n")
    assert (output.intact(), output.dropped, other.read_text()) == (False, 1, "")
    os.close(opened)
    output.close()
