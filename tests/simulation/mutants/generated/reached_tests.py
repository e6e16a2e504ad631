"""Which tests reach the block of a mutant, and how fast they are. No other test can notice the mutant.

One run of all tests on the unbroken engine notes it. A block that runs while modules are imported, or code outside
functions, counts as reached by each test that reaches another block of its module, by those in a file with the name of
the module, and by those that read all constants.
"""

import json
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.simulation.mutants.generated.blocks import Block, BlockNotes, SmallestBlocks
from tests.simulation.mutants.generated.forks import in_forks
from tests.simulation.mutants.generated.generate import ROOT, GeneratedMutant

OPTIONS: Final = ("-p", "no:cacheprovider", "-q", "-n", "0", "-m", "not emulator and not e2e")
_FOLDERS: Final = ("unit", "contract", "integration")
#: These test the example, the documents and the command line.
_OTHER: Final = frozenset(("shortener", "docs", "cli"))
#: These read all constants and defaults, and call nothing.
_OF_CONSTANTS: Final = ("tests/unit/docs/test_constants_page.py", "tests/unit/domain/breakers/test_defaults.py")
#: These read some constants.
_OF_NUMBERS: Final = ("tests/unit/docs/test_limits_page.py", "tests/unit/docs/test_stated_numbers.py")


class ReachedTests:
    """The tests that reach each block."""

    def __init__(self, seconds: Mapping[str, float], reached: Mapping[Block, Sequence[str]]) -> None:
        """`seconds` that each test takes, by its name; a test that fails on the unbroken engine is left out."""
        self._seconds = seconds
        self._reached = reached
        self._blocks = SmallestBlocks(reached)
        self._of_module: dict[str, set[str]] = defaultdict(set)
        for block, tests in reached.items():
            self._of_module[block[0]].update(tests)
        self._of_constants = {name for name in seconds if name.partition("::")[0] in _OF_CONSTANTS}
        self._of_numbers = {name for name in seconds if name.partition("::")[0] in _OF_NUMBERS}

    def of(self, mutant: GeneratedMutant) -> list[str]:
        """Return the tests: first those of constants, then those in files named after the module, then the fastest."""
        stem = mutant.module.rpartition(".")[2]

        def near(name: str) -> bool:
            words = _words(name)
            return words in stem or stem.rstrip("s") in words

        def rank(name: str) -> tuple[bool, bool, bool, float]:
            return name not in self._of_constants, _words(name) != stem, not near(name), self._seconds[name]

        block = self._blocks.around(mutant)
        found = set(self._reached[block] if block else ())
        if not found:
            constants = self._of_constants | self._of_numbers
            found = self._of_module[mutant.module].union(constants, filter(near, self._seconds))
        return sorted(found & self._seconds.keys(), key=rank)


def _words(test: str) -> str:
    """In the name of its file."""
    return Path(test.partition("::")[0]).stem.removeprefix("test_")


def reached_tests(path: Path, *, processes: int, files: Sequence[str] | None = None) -> ReachedTests:
    """Read them from the file, or find them out and write it. The name of the file stands for the tree.

    `files` of tests; all of them if it is None.
    """
    if not path.exists():
        path.with_suffix(".part").write_text(json.dumps(_run(files or [*_test_files()], processes)), encoding="utf-8")
        path.with_suffix(".part").replace(path)
    written = json.loads(path.read_text(encoding="utf-8"))
    names = [name for name, _ in written["tests"]]
    reached = {
        (module, first, last): [names[number] for number in found] for module, first, last, found in written["blocks"]
    }
    seconds = {name: seconds for name, seconds in written["tests"] if seconds is not None}
    return ReachedTests(seconds, reached)


def _run(files: Sequence[str], processes: int) -> object:
    """Each process takes every n-th file."""
    parts = [files[number::processes] for number in range(processes)]
    tests: list[tuple[str, float | None]] = []
    merged: dict[Block, list[int]] = defaultdict(list)
    for ended in in_forks(parts, lambda files, _end: _noted(files), processes=processes):
        part = json.loads(ended.result())
        for module, first, last, found in part["blocks"]:
            merged[module, first, last] += [len(tests) + number for number in found]
        tests += part["tests"]
    return {"tests": tests, "blocks": [(*block, found) for block, found in sorted(merged.items())]}


def _noted(files: Sequence[str]) -> str:
    """In a process that has not imported the engine."""
    notes = BlockNotes()
    recorder = _Recorder(notes.hits)
    pytest.main([*OPTIONS, *files], plugins=[recorder])
    names = [*recorder.seconds]
    reached: dict[int, list[int]] = {number: [] for number in range(len(notes.blocks))}
    for index, name in enumerate(names):
        for number in recorder.reached[name]:
            reached[number].append(index)
    tests = [(name, None if name in recorder.failed else recorder.seconds[name]) for name in names]
    return json.dumps({"tests": tests, "blocks": [(*notes.blocks[number], found) for number, found in reached.items()]})


class _Recorder:
    """A plugin of pytest."""

    def __init__(self, hits: set[int]) -> None:
        self.seconds: dict[str, float] = {}
        self.reached: dict[str, list[int]] = {}
        self.failed: set[str] = set()
        self._hits = hits

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self._hits.clear()
        began = time.process_time()
        try:
            return (yield)
        finally:
            self.seconds[item.nodeid] = round(time.process_time() - began, 3)
            self.reached[item.nodeid] = [*self._hits]

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed.add(report.nodeid)


def _test_files() -> Iterator[str]:
    for folder in _FOLDERS:
        for path in sorted((ROOT / "tests" / folder).rglob("test_*.py")):
            if not _OTHER & set(path.relative_to(ROOT).parts):
                yield str(path.relative_to(ROOT))
    # All other tests of documents are left out above.
    yield from (_OF_CONSTANTS[0], *_OF_NUMBERS)
