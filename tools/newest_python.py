"""Prints the newest Python of the machine that is newer than the one that runs this: `python3 -m tools.newest_python`.

It looks on the path, and among the versions of pyenv. It prints an empty line if it finds none.
"""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tools.bootstrap import OTHER_PYTHONS, is_new_enough

#: A Python that starts, and can make an environment with pip.
_NEEDED: Final = "ensurepip"


def newest() -> str:
    """Its path; empty if no Python of `OTHER_PYTHONS` is newer than this one."""
    running = f"python3.{sys.version_info[1]}"
    newer = OTHER_PYTHONS[: OTHER_PYTHONS.index(running)] if running in OTHER_PYTHONS else ()
    found = (path for name in newer for path in _candidates(name))
    return next((path for path in found if is_new_enough(path, _NEEDED)), "")


def _candidates(name: str) -> Iterator[str]:
    if on_path := shutil.which(name):
        yield on_path
    if pyenv := shutil.which("pyenv"):
        root = subprocess.run([pyenv, "root"], capture_output=True, text=True, check=False).stdout.strip()
        yield from map(str, sorted(Path(root).glob(f"versions/*/bin/{name}"), reverse=True))


if __name__ == "__main__":
    print(newest())
