"""A process with the command line of a worker of the emulator."""

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def pretend_worker(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that runs the script in `folder` that a worker would run."""
    folder.mkdir(parents=True)
    script = folder / "_worker.py"
    script.write_text("import sys; print(flush=True); sys.stdin.read()")
    with subprocess.Popen([sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout
        process.stdout.readline()
        yield process
        process.kill()
