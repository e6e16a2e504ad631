"""Apply a mutant: its module is compiled from the mutated text when it is first imported."""

import importlib.machinery
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Protocol


class MutantError(Exception):
    """The text to mutate does not occur exactly once: update the mutant to the present code."""


class Mutation(Protocol):
    """A change to one module."""

    @property
    def module(self) -> str: ...

    def text(self, path: str) -> str:
        """The changed text of the module, whose file is at `path`."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change to the text of one module. An empty `new` deletes `old`."""

    name: str
    module: str
    old: str
    new: str

    def text(self, path: str) -> str:
        """Raises `MutantError`."""
        text = Path(path).read_text(encoding="utf-8")
        if (found := text.count(self.old)) != 1:
            raise MutantError(f"{self.name}: {self.old!r} occurs {found} times in {self.module}; it must occur once")
        return text.replace(self.old, self.new)

    def checked(self) -> None:
        """Raises `MutantError` if the mutant cannot be applied, and `SyntaxError` if it is not valid Python."""
        spec = find_spec(self.module)
        if spec is None or spec.origin is None:
            raise MutantError(f"{self.name}: module {self.module} does not exist")
        compile(self.text(spec.origin), spec.origin, "exec")


class _Loader(importlib.machinery.SourceFileLoader):
    def __init__(self, fullname: str, path: str, mutant: Mutation) -> None:
        super().__init__(fullname, path)
        self._mutant = mutant

    def get_code(self, fullname: str) -> object:  # type: ignore[override]
        path = self.get_filename(fullname)
        return compile(self._mutant.text(path), path, "exec")


class _Finder:
    def __init__(self, mutant: Mutation) -> None:
        self._mutant = mutant

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._mutant.module:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.origin is None:
            raise MutantError(f"module {fullname} does not exist")
        spec.loader = _Loader(fullname, spec.origin, self._mutant)
        return spec


def apply(mutant: Mutation) -> None:
    """Call this before the module is imported. Raises `MutantError` if it is imported already."""
    if mutant.module in sys.modules:
        raise MutantError(f"{mutant.module} is imported already")
    sys.meta_path.insert(0, _Finder(mutant))
