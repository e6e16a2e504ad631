"""Run the unit, contract and integration tests against one mutant: first those that are about its module."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.simulation.mutants.generated.generate import ROOT, GeneratedMutant

#: The environment variable that names the mutant for `pytest_plugin`.
MUTANT: Final = "TIDEMILL_MUTANT"
_FOLDERS: Final = ("unit", "contract", "integration")
#: These test the example, the documents and the command line.
_OTHER: Final = frozenset(("shortener", "docs", "cli"))
_PLUGIN: Final = "tests.simulation.mutants.generated.pytest_plugin"
_MOST_SECONDS: Final = 900


def failing_test(mutant: GeneratedMutant) -> str | None:
    """What caught the mutant; None if every test passed."""
    near, far = _test_files(mutant)
    for files in (near, far):
        if files and (caught := _first_failure(mutant, files)):
            return caught
    return None


def _first_failure(mutant: GeneratedMutant, files: list[str]) -> str | None:
    command = [sys.executable, "-m", "pytest", "-p", _PLUGIN, "-p", "no:cacheprovider"]
    command += ["-x", "-q", "-n", "0", "-m", "not emulator and not e2e", *files]
    try:
        ran = subprocess.run(
            command,
            cwd=ROOT,
            env=os.environ | {MUTANT: mutant.id},
            capture_output=True,
            text=True,
            check=False,
            timeout=_MOST_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return "the tests do not come to an end"
    if ran.returncode == 0:
        return None
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", ran.stdout, re.MULTILINE)
    return failed[0] if failed else f"pytest ended with {ran.returncode}: {(ran.stderr or ran.stdout)[-200:]}"


def _test_files(mutant: GeneratedMutant) -> tuple[list[str], list[str]]:
    """Those that have the name of the module or import it, and all others that may reach it."""
    stem = mutant.module.rpartition(".")[2]
    names = re.compile(rf"\b{re.escape(mutant.module)}\b")
    near: list[str] = []
    far: list[str] = []
    for path in _all_test_files():
        words = path.stem.removeprefix("test_")
        close = words in stem or stem.rstrip("s") in words or names.search(path.read_text(encoding="utf-8"))
        (near if close else far).append(str(path.relative_to(ROOT)))
    return near, far


def _all_test_files() -> Iterator[Path]:
    for folder in _FOLDERS:
        for path in sorted((ROOT / "tests" / folder).rglob("test_*.py")):
            if not _OTHER & set(path.relative_to(ROOT).parts):
                yield path
